#!/usr/bin/env python3
"""What `ringmaster run` promises when things go wrong: the same weights, bit for bit, or an error with its place."""
import hashlib
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import unittest

from ringmaster_run import ROOT, LONG, LONG_EPOCHS, RunTest, main, processes, ringmaster, wait_until

SEED = int(os.environ.get("RINGMASTER_TEST_SEED", random.randrange(1 << 30)))
MANY_LOSSES = ["--set", "spec.restart.code=100", "--set", "spec.restart.unknown=100", "--set", "spec.restart.outOfMemory=100"]


def kill_trainer(run, index):
    def found():
        if not run.running():
            raise AssertionError(f"the run ended before worker {index} could be killed:\n{run.text()}")
        return run.workers().get(index)
    pid = wait_until(found, f"worker {index}")
    os.kill(pid, signal.SIGKILL)


class KilledWorkers(RunTest):
    def test_ten_kills_at_random_steps_change_no_bit(self):
        print(f"RINGMASTER_TEST_SEED={SEED}")
        dice = random.Random(SEED)
        expected = self.undisturbed(*LONG)
        run = self.digits(*LONG, *MANY_LOSSES)
        round_of_kill = 0
        for kill in range(10):  # the first 300 steps of 450 or more: the run must not end before the last kill comes
            round_of_kill = self.wait_for_round(run, after=round_of_kill, step=dice.randrange(30 * kill, 30 * (kill + 1)))
            kill_trainer(run, dice.randrange(4))
        self.assertEqual(run.result(), expected, run.text())
        status = run.job()["status"]
        self.assertGreaterEqual(status["restarts"]["total"], 10, status["restarts"])
        self.assertIn("WorkerLost", ringmaster(self.folder, "get", "digits", "--events").stdout)

    def wait_for_round(self, run, after, step):
        """The round after that one, once it trains (kills before it has begun may be one incident) and the job has reached the step.

        It asks once for all, because the run goes on while it asks, which takes long on a busy machine with a sanitizer.
        """
        def reached():
            if not run.running():
                raise AssertionError(f"the run ended before a round after {after} reached step {step}:\n{run.text()}")
            status = run.job().get("status", {})
            training = any(c["type"] == "Training" and c["status"] == "True" for c in status.get("conditions", []))
            done = training and status.get("round", 0) > after and status.get("progress", {}).get("step", 0) >= step
            return status["round"] if done else None
        return wait_until(reached, f"step {step} in a round after {after}")

    def test_killed_launcher_takes_its_trainer_along_and_is_replaced(self):
        expected = self.undisturbed(*LONG)
        run = self.digits(*LONG, *MANY_LOSSES)
        run.wait_for_step(20)
        trainer = run.workers()[1]
        os.kill(run.workers("ringmaster-launcher")[1], signal.SIGKILL)
        wait_until(lambda: trainer not in {pid for pid, _, _ in processes()}, "the trainer's end")
        self.assertEqual(run.result(), expected)

    def test_kill_inside_the_writing_of_a_checkpoint_changes_no_bit(self):
        every_step = ["--set", "spec.trainer.epochs=10", "--set", "spec.checkpoint.everySteps=1"]
        expected = self.undisturbed(*every_step)
        run = self.digits(*every_step, *MANY_LOSSES)
        run.wait_for_step(10)
        self.kill_while_writing(run)
        self.assertEqual(run.result(), expected)
        self.assertGreaterEqual(run.job()["status"]["restarts"]["total"], 1)

    def kill_while_writing(self, run):
        """Kills trainers until one leaves the temporary file behind that it was writing."""
        folder = self.folder / ".ringmaster/digits/checkpoints"
        for _ in range(50):
            trainers = wait_until(lambda: run.workers(), "workers")
            name = wait_until(lambda: next((n for n in os.listdir(folder) if ".tmp" in n), None), "a checkpoint's writing")
            rank = int(re.search(r"rank-(\d+)", name).group(1))
            if rank not in trainers:
                continue
            os.kill(trainers[rank], signal.SIGKILL)
            wait_until(lambda: trainers[rank] not in {pid for pid, _, _ in processes()}, "the trainer's end")
            if (folder / name).exists():
                return
            run.wait_for_step(run.step() + 2)
        self.fail("no kill hit a checkpoint's writing")


class StoppedTrainer(RunTest):
    def test_stopped_trainer_is_named_by_its_peers_and_replaced(self):
        expected = self.undisturbed(*LONG)
        run = self.digits(*LONG, env={"RINGMASTER_PEER_TIMEOUT_SECONDS": "10"})  # less than by default: all that it costs is time
        run.wait_for_step(20)
        stopped = self.stop(run.workers()[2])
        launcher = run.workers("ringmaster-launcher")[2]
        self.assertEqual(run.result(), expected, run.text())
        status = run.job()["status"]
        self.assertEqual(status["restarts"]["byCause"], {"Hang": 1})
        incident = status["restarts"]["recent"][0]
        self.assertEqual((incident["pod"], incident["rank"]), ("digits-2-0", 2))
        self.assertIn("its launcher is there, but its peers hear nothing of its trainer", incident["message"])
        self.assertGreaterEqual(status["lostSeconds"]["detect"], 20, "it may still have come back by itself")
        pods = {member["pod"] for member in status["members"]}
        self.assertEqual(pods, {"digits-0-0", "digits-1-0", "digits-2-1", "digits-3-0"}, "the others stayed")
        self.assertFalse({stopped, launcher} & {pid for pid, _, _ in processes()}, "neither outlives the run")

    def stop(self, pid):
        """Stops the process; whatever becomes of the test, it does not stay."""
        process = os.pidfd_open(pid)

        def end():
            try:
                signal.pidfd_send_signal(process, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has ended, as it should
            os.close(process)
        self.addCleanup(end)
        signal.pidfd_send_signal(process, signal.SIGSTOP)
        return pid


class DrainedWorker(RunTest):
    def test_sigterm_of_one_launcher_costs_no_step_no_budget_and_no_other_worker(self):
        no_budget = ["--set", "spec.restart.code=0", "--set", "spec.restart.unknown=0", "--set", "spec.restart.hang=0"]
        epochs = 2 * LONG_EPOCHS
        never = ["--set", f"spec.trainer.epochs={epochs}", "--set", "spec.checkpoint.everySteps=0", "--set", "spec.checkpoint.everySeconds=0"]
        expected = self.undisturbed(*never)
        run = self.digits(*never, *no_budget)
        run.wait_for_step(40)
        before = run.workers()
        launcher = wait_until(lambda: run.workers("ringmaster-launcher").get(2), "the launcher of worker 2")
        os.kill(launcher, signal.SIGTERM)
        self.assertEqual(run.result(), expected, run.text())
        status = run.job()["status"]
        self.assertEqual(status["restarts"]["byCause"], {"Preemption": 1})
        self.assertEqual(status["restarts"]["recent"][0]["exitCode"], 0, "it left, it was not killed")
        self.assertEqual(status["round"], 2)
        drained = min(checkpoint["step"] for checkpoint in status["checkpoints"])
        self.assertGreaterEqual(drained, 40)
        self.assertLess(drained, expected[1], "the drain's own checkpoint: there was no other reason for one")
        self.assertRegex(run.text(), rf"(?i)round 2.*step {drained}")
        events = ringmaster(self.folder, "get", "digits", "--events").stdout
        self.assertIn("WorkerLeaving", events)
        pods = {member["pod"] for member in status["members"]}
        self.assertEqual(pods, {"digits-0-0", "digits-1-0", "digits-2-1", "digits-3-0"}, f"the others stayed: {before}")


class KilledCommand(RunTest):
    def test_killed_command_leaves_no_worker_and_the_next_run_resumes(self):
        expected = self.undisturbed(*LONG)
        run = self.digits(*LONG)
        run.wait_for_step(40)
        left = list(run.workers().values()) + list(run.workers("ringmaster-launcher").values())
        self.assertGreaterEqual(len(left), 8)
        run.kill()
        wait_until(lambda: not set(left) & {pid for pid, _, _ in processes()}, "the workers' ends", deadline=30)
        again = self.digits(*LONG)
        self.assertEqual(again.result(), expected)
        self.assertIn("resumed", again.text())

    def test_interrupted_command_checkpoints_and_the_next_run_resumes(self):
        expected = self.undisturbed(*LONG)
        run = self.digits(*LONG)
        run.wait_for_step(35)
        run.interrupt()
        self.assertEqual(run.wait(), 130, run.text())
        stopped = int(re.search(r"stopped at step (\d+)", run.text()).group(1))
        self.assertEqual(run.job()["status"]["checkpoints"][0]["step"], stopped)
        self.assertEqual(self.digits(*LONG).result(), expected)

    def test_resumes_with_another_number_of_workers(self):
        expected = self.undisturbed(*LONG)
        run = self.digits(*LONG)
        run.wait_for_step(35)
        run.interrupt()
        self.assertEqual(run.wait(), 130)
        self.assertEqual(self.digits(*LONG, "--workers", "2").result(), expected)

    def test_resuming_another_training_is_refused(self):
        run = self.digits(*LONG)
        run.wait_for_step(15)
        run.interrupt()
        self.assertEqual(run.wait(), 130)
        other = self.digits(*LONG, "--set", "spec.trainer.seed=8")
        self.assertEqual(other.wait(), 65)
        self.assertIn("spec.trainer.seed", other.text())
        self.assertIn("--fresh", other.text())


class DamagedCheckpoints(RunTest):
    def stop_with_checkpoints(self):
        run = self.digits(*LONG)
        run.wait_for_step(35)
        wait_until(lambda: len(run.job()["status"]["checkpoints"]) > 1, "two checkpoints")
        run.interrupt()
        self.assertEqual(run.wait(), 130)
        newest, before = (checkpoint["step"] for checkpoint in run.job()["status"]["checkpoints"][:2])
        folder = self.folder / ".ringmaster/digits/checkpoints"
        files = sorted(folder.glob(f"step-{newest}-*"))
        self.assertEqual(len(files), 4)
        return (newest, before), files

    def check_fallback(self, steps, damaged):
        again = self.digits(*LONG)
        result = again.result()
        newest, before = steps
        self.assertRegex(again.text(), rf"The checkpoint of step {newest} does not load on worker .* skipped for the one of step {before}: .*{damaged.name}")
        return result

    def test_flipped_bit_is_named_and_the_checkpoint_before_is_used(self):
        expected = self.undisturbed(*LONG)
        steps, files = self.stop_with_checkpoints()
        content = bytearray(files[2].read_bytes())
        content[-100] ^= 0x10
        files[2].write_bytes(content)
        self.assertEqual(self.check_fallback(steps, files[2]), expected)

    def test_truncated_checkpoint_is_named_and_the_one_before_is_used(self):
        expected = self.undisturbed(*LONG)
        steps, files = self.stop_with_checkpoints()
        os.truncate(files[0], files[0].stat().st_size // 2)
        self.assertEqual(self.check_fallback(steps, files[0]), expected)


def fill(file):
    """Writes until the disk is full."""
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass


def is_whole(checkpoint, folder):
    """Whether the files of a checkpoint are those that the status speaks of."""
    name = f"step-{checkpoint['step']}-round-{checkpoint['round']}-rank-%d-of-{checkpoint['worldSize']}.safetensors"
    try:
        files = [(folder / (name % rank)).read_bytes() for rank in range(checkpoint["worldSize"])]
    except FileNotFoundError:
        return False
    digests = "".join(hashlib.sha256(content).hexdigest() + "\n" for content in files)
    return hashlib.sha256(digests.encode()).hexdigest() == checkpoint["digest"]


@unittest.skipUnless(os.geteuid() == 0, "a full disk is a small tmpfs, which only root may mount")
class FullDisk(RunTest):
    def test_full_disk_is_said_in_status_and_the_old_checkpoint_stays(self):
        expected = self.undisturbed(*LONG)
        disk = self.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=True)
        try:
            arguments = [*LONG, "--set", f"spec.checkpoint.directory={disk}"]
            run = self.digits(*arguments)
            run.wait_for_step(20)
            wait_until(lambda: run.job()["status"].get("checkpoints"), "a checkpoint")
            with open(disk / "ballast", "wb", buffering=0) as ballast:
                def failed():
                    self.assertTrue(run.running(), run.text())
                    fill(ballast)  # at each look: what the deletion of an old checkpoint gives back, too
                    status = run.job()["status"]
                    health = next(condition for condition in status["conditions"] if condition["type"] == "CheckpointsHealthy")
                    return status if health["status"] == "False" and is_whole(status["checkpoints"][0], disk) else None
                status = wait_until(failed, "the failed checkpoint, and the one before it whole on the disk")
            health = next(condition for condition in status["conditions"] if condition["type"] == "CheckpointsHealthy")
            self.assertEqual(health["reason"], "CheckpointFailed")
            self.assertIn("No space left", health["message"])
            self.assertIn(f"The one of step {status['checkpoints'][0]['step']} stays.", health["message"])
            self.assertRegex(ringmaster(self.folder, "get", "digits", "--events").stdout, "CheckpointFailed.*No space left")
            (disk / "ballast").unlink()
            self.assertEqual(run.result(), expected)
        finally:
            for left in self.runs:
                if left.running():
                    left.kill()
            subprocess.run(["umount", "-l", str(disk)], check=True)


class Garbage(RunTest):
    def test_garbage_on_every_port_of_a_run_disturbs_nothing(self):
        expected = self.undisturbed(*LONG)
        run = self.digits(*LONG)
        run.wait_for_step(15)
        ports = listening_ports(run)
        self.assertGreaterEqual(len(ports), 5, "the rendezvous and four workers")
        for address in ports * 3:
            for garbage in (b"\0" * 4096, b"GET / HTTP/1.1\r\n\r\n", random.Random(1).randbytes(4096)):
                try:
                    with socket.create_connection(address, timeout=10) as connection:
                        connection.sendall(garbage)
                except OSError:
                    pass  # refused: that is what is wanted
        self.assertEqual(run.result(), expected)
        self.assertEqual(run.job()["status"].get("restarts", {}).get("total", 0), 0)
        operator_log = (self.folder / ".ringmaster/digits/operator.log").read_text()
        self.assertEqual(operator_log.count("refused on the rendezvous port"), 1, operator_log)
        for worker in range(4):
            log = ringmaster(self.folder, "logs", "digits", "--worker", str(worker)).stdout
            reasons = re.findall(r'refused a connection .*because_it="([^"]+)"', log)
            self.assertTrue(reasons, log)
            self.assertEqual(len(reasons), len(set(reasons)), "each reason once")


def listening_ports(run):
    """The loopback addresses on which the run's processes listen."""
    inodes = set()
    for pid in [run.process.pid, *run.workers().values()]:
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(descriptor))
            except OSError:
                continue  # closed meanwhile
            if match:
                inodes.add(match.group(1))
    found = []
    for table, family in (("/proc/net/tcp", 4), ("/proc/net/tcp6", 6)):
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] != "0A" or fields[9] not in inodes:
                continue
            host, port = fields[1].split(":")
            address = socket.inet_ntoa(bytes.fromhex(host)[::-1]) if family == 4 else "::1"
            if address.startswith("127.") or family == 6:
                found.append((address, int(port, 16)))
    return found


class BadData(RunTest):
    def run_with(self, content):
        manifest = self.folder / "job.yaml"
        manifest.write_text((ROOT / "examples/digits/job.yaml").read_text())
        if content is not None:
            (self.folder / "digits.csv").write_text(content)
        run = self.run_job(manifest)
        self.assertEqual(run.wait(), 2, run.text())
        self.assertEqual(run.step(), 0)
        self.assertIn("digits.csv", run.text())
        return run.text()

    def test_missing_file_fails_the_job_with_its_name(self):
        self.assertIn("no such data file", self.run_with(None))

    def test_malformed_line_fails_the_job_with_file_and_line(self):
        lines = (ROOT / "examples/digits/digits.csv").read_text().splitlines()
        lines[41] = lines[41].replace(",", ",x", 1)
        self.assertIn("digits.csv:42", self.run_with("\n".join(lines) + "\n"))

    def test_a_label_that_is_no_class_fails_the_job_with_file_line_and_classes(self):
        lines = (ROOT / "examples/digits/digits.csv").read_text().splitlines()
        lines[41] = "10" + lines[41][lines[41].index(","):]
        self.assertIn("digits.csv:42: label 10 is not in 0..9 (10 classes)", self.run_with("\n".join(lines) + "\n"))

    def test_empty_file_fails_the_job_with_its_name(self):
        self.run_with("")


if __name__ == "__main__":
    main()

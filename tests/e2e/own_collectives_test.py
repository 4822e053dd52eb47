#!/usr/bin/env python3
"""A user sums arrays among processes of their own, as examples/collectives/README.md says: installs, builds out of tree, starts ranks."""
import signal
import socket
import subprocess

from own_project import OwnProjectTest
from ringmaster_run import main, wait_until

KEY = "0123456789abcdef"


# In the place of the example's sum: each of the others, of which Adasum's alone is no sum.
PARTS = """
  std::vector<float> sum(numbers.size());
  ringmaster::collectives::JoinGroup joining(*group);
  RM_RETURN_IF_ERROR(joining.Allreduce(Reduction::kSum, numbers, sum, "numbers").status());
  RM_RETURN_IF_ERROR(joining.Join().status());
  if (sum.back() != 3) return absl::InternalError("the joined sum is wrong");
  ringmaster::collectives::OneBitSum bits(numbers.size());
  RM_RETURN_IF_ERROR(bits.Reduce(*group, numbers, sum, "bits"));
  if (sum.back() != 3) return absl::InternalError("the sum of single bits is wrong");
  ringmaster::collectives::Adasum adaptive(group->world(), numbers.size(), {0});
  RM_RETURN_IF_ERROR(adaptive.Add(group->rank(), numbers));
  RM_RETURN_IF_ERROR(adaptive.Reduce(*group, sum, "adaptive"));
  ringmaster::collectives::TopKSum all(numbers.size(), 1);
  RM_RETURN_IF_ERROR(all.Reduce(*group, numbers, sum, "largest"));
  numbers = sum;
"""
HEADERS = ("compression/one_bit", "compression/top_k", "training/adasum", "training/join_group")


def free_addresses(count):
    """Whose ports were free a moment ago, all of them at once."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return addresses


def listens(address):
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
        return True
    except ConnectionRefusedError:
        return False


class OwnCollectives(OwnProjectTest):
    example = "collectives"

    def start(self, rank, addresses, key=KEY):
        command = [self.project / "build/sum", str(rank), key, *addresses]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_what_a_trainer_does_to_gradients_can_be_had_alone(self):
        source = self.project / "sum.cc"
        text = source.read_text()
        plain = '  RM_RETURN_IF_ERROR(group->Allreduce(Reduction::kSum, numbers, numbers, "numbers"));\n'
        self.assertIn(plain, text)
        includes = "".join(f"#include <ringmaster/collectives/{name}.h>\n" for name in HEADERS)
        source.write_text(includes + text.replace(plain, PARTS))
        self.build()
        addresses = free_addresses(2)
        for rank, process in enumerate([self.start(rank, addresses) for rank in range(2)]):
            self.assertEqual(self.end_of(process), (0, f"rank {rank} of 2: 3\n"))

    def end_of(self, process):
        """(exit code, what it wrote)"""
        text = process.communicate(timeout=60)[0]
        return process.returncode, text

    def test_processes_of_ones_own_sum_an_array_and_name_who_does_not_take_part(self):
        self.build()
        addresses = free_addresses(3)
        ranks = [self.start(rank, addresses) for rank in range(3)]
        for rank, process in enumerate(ranks):
            self.assertEqual(self.end_of(process), (0, f"rank {rank} of 3: 6\n"))
        self.check_a_rank_that_stops()
        self.check_an_address_that_is_taken()
        self.check_another_key()
        self.check_what_it_refuses()

    def check_a_rank_that_stops(self):
        """It has come as far as its address being taken, and says no more."""
        addresses = free_addresses(2)
        stopped = self.start(1, addresses)
        wait_until(lambda: listens(addresses[1]), "the rank's address")
        stopped.send_signal(signal.SIGSTOP)
        code, text = self.end_of(self.start(0, addresses))
        self.assertEqual(code, 1)
        self.assertRegex(text, rf"rank 1 \({addresses[1]}")

    def check_an_address_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            code, text = self.end_of(self.start(0, [address, *free_addresses(1)]))
        self.assertEqual(code, 1)
        self.assertRegex(text, rf"{address}.*Address already in use")

    def check_another_key(self):
        addresses = free_addresses(2)
        ranks = [self.start(0, addresses), self.start(1, addresses, key=KEY[::-1])]
        for process in ranks:
            code, text = self.end_of(process)
            self.assertEqual(code, 1, text)
            self.assertNotIn("of 2:", text)

    def check_what_it_refuses(self):
        for rank, key, pattern in ((7, KEY, "no address of this rank"), (0, "short", "key")):
            code, text = self.end_of(self.start(rank, free_addresses(2), key))
            self.assertEqual(code, 1)
            self.assertRegex(text, pattern)


if __name__ == "__main__":
    main()

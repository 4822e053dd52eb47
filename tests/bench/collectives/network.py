"""Four hosts as network namespaces, joined by veth and a bridge, each link shaped to a rate in both directions.

The namespaces live as long as the processes that hold them, and those as long as this one: nothing of the machine's own
network is touched. Each host has a /dev/shm of its own, so that only its own ranks share memory.
"""
import subprocess
import sys
import threading
import time

from contenders import Wrong

HOSTS = 4
STREAM_BYTES = 1 << 28
BLOCK = 1 << 20


class Hosts:
    """`with Hosts(rate) as hosts:`; addresses 10.83.0.1 and so on."""

    def __init__(self, rate):
        self.rate, self.holders = rate, []

    def __enter__(self):
        try:
            switch = self.hold()
            run(switch, "ip link add br0 type bridge")
            run(switch, "ip link set br0 up")
            for number in range(HOSTS):
                host = self.hold()
                run(switch, f"ip link add port{number} type veth peer name eth0 netns {host}")
                run(switch, f"ip link set port{number} master br0 up")
                run(host, f"ip address add {address(number)}/24 dev eth0")
                run(host, "ip link set eth0 up")
                run(host, "ip link set lo up")
                # The queue holds what 20 ms pass on: deep enough for the streams, shallow enough that a loss is noticed soon.
                shape = f"root tbf rate {self.rate} burst 256k latency 20ms"
                run(host, f"tc qdisc add dev eth0 {shape}")
                run(switch, f"tc qdisc add dev port{number} {shape}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for holder in self.holders:
            holder.stdin.close()
            holder.wait()

    def hold(self):
        holder = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /dev/shm && echo ready && exec cat > /dev/null"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.holders.append(holder)
        if holder.stdout.readline() != "ready\n":
            raise Wrong("network namespaces: needs root and util-linux' unshare")
        return holder.pid

    def flag(self):
        """The value of --hosts."""
        return ",".join(f"{holder.pid}@{address(number)}" for number, holder in enumerate(self.holders[1:]))

    def goodput(self):
        """Bytes per second, in GB/s, that each host receives from the one before while it sends as much to the next: the mean of all."""
        streams = [subprocess.Popen(["nsenter", "-t", str(holder.pid), "-n", sys.executable, "-B", __file__, address(number), address((number + 1) % HOSTS)],
                                    stdout=subprocess.PIPE, text=True) for number, holder in enumerate(self.holders[1:])]
        rates = [stream.communicate(timeout=60)[0] for stream in streams]
        if any(stream.returncode for stream in streams):
            raise Wrong("plain TCP streams: one failed")
        return sum(map(float, rates)) / HOSTS


def address(number):
    return f"10.83.0.{number + 1}"


def run(pid, command):
    done = subprocess.run(["nsenter", "-t", str(pid), "-n", *command.split()], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Wrong(f"{command}: {done.stderr.strip()}")


def stream(mine, following):
    """One host's end of the ring of streams; prints GB/s."""
    import socket
    listener = socket.create_server((mine, 7000))
    deadline = time.monotonic() + 20
    while True:
        try:
            out = socket.create_connection((following, 7000), timeout=20)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    listener.settimeout(20)
    back, _ = listener.accept()
    back.settimeout(60)
    out.settimeout(60)

    def send():
        block = bytes(BLOCK)
        for _ in range(STREAM_BYTES // BLOCK):
            out.sendall(block)

    sender = threading.Thread(target=send)
    sender.start()
    buffer = bytearray(BLOCK)
    early = received = back.recv_into(buffer)  # the clock runs from the first bytes, whenever the others came
    start = time.monotonic()
    while received < STREAM_BYTES:
        count = back.recv_into(buffer)
        if count == 0:
            sys.exit("the stream ended early")
        received += count
    print((received - early) / (time.monotonic() - start) / 1e9)
    sender.join()


if __name__ == "__main__":
    stream(*sys.argv[1:])

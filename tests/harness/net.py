"""A world of its own for allowed egress: one network namespace where `stockade up` runs, joined by a veth to another where every
address is local, with a DNS server that counts what it is asked and origins that record what reaches them."""
import ctypes
import os
import socket
import struct
import subprocess
import threading

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
RESOLVER = "198.51.100.53"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def inside(name, function):
    """function() on a thread that is in that namespace; sockets that it makes stay there."""
    box = {}

    def enter():
        try:
            with open(f"/run/netns/{name}", "rb") as handle:
                if LIBC.setns(handle.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            box["value"] = function()
        except BaseException as error:  # handed to the caller below
            box["error"] = error
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if "error" in box:
        raise box["error"]
    return box["value"]


class World:
    def __init__(self):
        tag = f"{os.getpid() % 100000}{threading.get_native_id() % 100:02}"
        self.near, self.far = f"stkn{tag}", f"stkf{tag}"
        self.names, self.queries, self.reached = {}, [], []
        self.sockets = []

    def __enter__(self):
        for name in (self.near, self.far):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.near, "link", "add", "out", "type", "veth", "peer", "name", "in", "netns", self.far)
        ip("-n", self.near, "address", "add", "10.201.0.1/30", "dev", "out")
        ip("-n", self.far, "address", "add", "10.201.0.2/30", "dev", "in")
        ip("-n", self.near, "link", "set", "out", "up")
        ip("-n", self.far, "link", "set", "in", "up")
        ip("-n", self.near, "route", "add", "default", "via", "10.201.0.2")
        ip("-n", self.far, "route", "add", "local", "default", "dev", "lo")
        self.serve_dns()
        return self

    def __exit__(self, *_):
        for one in self.sockets:
            one.close()
        for name in (self.near, self.far):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)

    def prefix(self):
        """In front of a command that is to run in the near namespace (`ip netns exec` would hide the cgroups)."""
        return ["nsenter", f"--net=/run/netns/{self.near}", "--"]

    def settings(self):
        return {"egress.resolvers": f'["{RESOLVER}:53"]'}

    # --- names

    def serve_dns(self):
        def listen():
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.setsockopt(socket.SOL_IP, 15, 1)  # IP_FREEBIND
            server.bind((RESOLVER, 53))
            return server
        server = inside(self.far, listen)
        self.sockets.append(server)
        threading.Thread(target=self.answer_dns, args=(server,), daemon=True).start()

    def answer_dns(self, server):
        while True:
            try:
                query, peer = server.recvfrom(4096)
            except OSError:
                return
            end, labels = 12, []
            while query[end]:
                labels.append(query[end + 1:end + 1 + query[end]].decode("latin-1"))
                end += 1 + query[end]
            name, kind = ".".join(labels).lower(), struct.unpack(">H", query[end + 1:end + 3])[0]
            self.queries.append((name, kind))
            addresses = self.names.get(name)
            records = [socket.inet_aton(address) for address in addresses or ()] if kind == 1 else []
            flags = 0x8180 if addresses is not None else 0x8183
            answer = query[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + query[12:end + 5]
            for record in records:
                answer += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + record
            try:
                server.sendto(answer, peer)
            except OSError:
                return

    # --- origins

    def origin(self, port, answer=b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"):
        """A TCP origin at every address: reads once, records (address, port, bytes), answers, closes."""
        def listen():
            server = socket.create_server(("0.0.0.0", port), backlog=64)
            return server
        server = inside(self.far, listen)
        self.sockets.append(server)
        threading.Thread(target=self.answer_tcp, args=(server, answer), daemon=True).start()

    def answer_tcp(self, server, answer):
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=self.answer_one, args=(peer, answer), daemon=True).start()

    def answer_one(self, peer, answer):
        with peer:
            peer.settimeout(10)
            try:
                got = peer.recv(65536)
                self.reached.append((*peer.getsockname(), got))
                peer.sendall(answer)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
            except OSError:
                pass

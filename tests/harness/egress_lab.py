"""Two network namespaces for the egress proxy: the proxy lives in one; across a veth every address is local in the other, where a
DNS server of ours counts (and can lie) and origins record what reaches them. Nothing leaves the two namespaces."""

import ctypes
import json
import os
import queue
import secrets
import select
import signal
import socket
import struct
import subprocess
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PROXY_V4, ORIGIN_V4 = "11.0.0.1", "11.0.0.2"
PROXY_V6, ORIGIN_V6 = "2600:1::1", "2600:1::2"
TIME = 15.0


def wait_for(what, condition, timeout=TIME):
    end = time.monotonic() + timeout
    while True:
        got = condition()
        if got:
            return got
        assert time.monotonic() < end, f"timed out: {what}"
        select.select([], [], [], 0.01)


def run(*argv):
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)


class inside:
    """The calling thread's network namespace, for as long as the block runs: sockets made in it stay there."""

    def __init__(self, name):
        self.path = f"/run/netns/{name}"

    def __enter__(self):
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(self.path, os.O_RDONLY)
        self.enter(there)
        os.close(there)

    def __exit__(self, *_):
        self.enter(self.home)
        os.close(self.home)

    @staticmethod
    def enter(fd):
        if LIBC.setns(fd, 0x40000000) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def encode_name(name):
    out = b""
    for label in name.rstrip(".").split("."):
        out += bytes([len(label)]) + label.encode("latin-1")
    return out + b"\0"


def decode_name(data, at):
    labels = []
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels), at + 1


def record(owner, rtype, ttl, data):
    return encode_name(owner) + struct.pack(">HHIH", rtype, 1, ttl, len(data)) + data


class Dns:
    """names: name -> list of answers: addresses, "CNAME x", "EXTRA owner A addr", or one of NXDOMAIN, SERVFAIL, TIMEOUT, MALFORMED,
    TRUNCATED, TCPCUT; a callable gets (type, nth query) and gives such a list. "*.x" matches below x. hook(query, reply) may give
    the list of datagrams to send instead."""

    def __init__(self, ns, address=ORIGIN_V4):
        self.names, self.queries, self.hook, self.ttl = {}, [], None, 0
        self.tcp_queries = 0
        with inside(ns):
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.udp.bind((address, 53))
            self.tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.tcp.bind((address, 53))
            self.tcp.listen(64)
        threading.Thread(target=self.serve_udp, daemon=True).start()
        threading.Thread(target=self.serve_tcp, daemon=True).start()

    def close(self):
        for sock in (self.udp, self.tcp):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def asked(self, name):
        return [q for q in self.queries if q[0] == name]

    def find(self, name, rtype):
        found = self.names.get(name)
        if found is None:
            for key, value in self.names.items():
                if key.startswith("*.") and name.endswith(key[1:]):
                    found = value
        if callable(found):
            return found(rtype, len([q for q in self.queries if q[0] == name and q[1] == rtype]))
        return found

    def answer(self, query, tcp):
        name, at = decode_name(query, 12)
        rtype = struct.unpack(">H", query[at : at + 2])[0]
        self.queries.append((name, rtype))
        question = query[12 : at + 4]
        found = self.find(name, rtype)
        if found is None:
            found = ["NXDOMAIN"]

        def reply(flags, answers=()):
            return query[:2] + struct.pack(">HHHHH", 0x8180 | flags, 1, len(answers), 0, 0) + question + b"".join(answers)

        if "TIMEOUT" in found:
            return None
        if "NXDOMAIN" in found:
            return reply(3)
        if "SERVFAIL" in found:
            return reply(2)
        if "MALFORMED" in found:
            return query[:2] + struct.pack(">HHHHH", 0x8180, 1, 3, 0, 0) + question + b"\xc0\x0c\x00"
        if "TRUNCATED" in found and not tcp or "TCPCUT" in found:
            return reply(0x0200)
        return reply(0, self.records(name, rtype, found))

    def records(self, name, rtype, found):
        out, owner = [], name
        for item in found:
            words = item.split()
            if words[0] == "CNAME":
                out.append(record(owner, 5, self.ttl, encode_name(words[1])))
                owner = words[1].rstrip(".")
            elif words[0] == "EXTRA":
                out.append(record(words[1], 1, self.ttl, socket.inet_aton(words[3])))
            elif ":" in item and rtype == 28:
                out.append(record(owner, 28, self.ttl, socket.inet_pton(socket.AF_INET6, item)))
            elif item.count(".") == 3 and ":" not in item and rtype == 1:
                out.append(record(owner, 1, self.ttl, socket.inet_aton(item)))
        return out

    def serve_udp(self):
        while True:
            try:
                query, peer = self.udp.recvfrom(4096)
            except OSError:
                return
            if not query:
                return
            reply = self.answer(query, False)
            datagrams = self.hook(query, reply) if self.hook else [reply]
            for datagram in datagrams:
                if datagram is not None:
                    self.udp.sendto(datagram, peer)

    def serve_tcp(self):
        while True:
            try:
                conn, _ = self.tcp.accept()
            except OSError:
                return
            with conn:
                conn.settimeout(5)
                try:
                    length = conn.recv(2, socket.MSG_WAITALL)
                    query = conn.recv(struct.unpack(">H", length)[0], socket.MSG_WAITALL)
                    self.tcp_queries += 1
                    reply = self.answer(query, True)
                    if reply:
                        conn.sendall(struct.pack(">H", len(reply)) + reply)
                except (OSError, struct.error):
                    pass


class Origin:
    """Listens on a port of every address. Each connection is noted as {address, port, data} and served by `serve(conn, note)` in a
    thread of its own; the default echoes, port 80 answers HTTP."""

    def __init__(self, ns, port, serve=None):
        self.port, self.notes = port, []
        self.serve = serve or (self.http if port == 80 else self.echo)
        with inside(ns):
            self.sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.sock.bind(("::", port))
            self.sock.listen(512)
        threading.Thread(target=self.loop, daemon=True).start()

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()

    def loop(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            address = conn.getsockname()[0]
            note = {"address": address.removeprefix("::ffff:"), "port": self.port, "data": b"", "eof": False}
            self.notes.append(note)
            threading.Thread(target=self.one, args=(conn, note), daemon=True).start()

    def one(self, conn, note):
        with conn:
            try:
                self.serve(conn, note)
            except OSError:
                pass

    @staticmethod
    def echo(conn, note):
        while data := conn.recv(65536):
            note["data"] += data
            conn.sendall(data)
        note["eof"] = True

    @staticmethod
    def http(conn, note):
        while b"\r\n\r\n" not in note["data"]:
            data = conn.recv(65536)
            if not data:
                return
            note["data"] += data
        body = b"hello from the origin\n"
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        conn.settimeout(5)
        while data := conn.recv(65536):
            note["data"] += data
        note["eof"] = True


class Capture:
    """Every packet on every interface of a namespace, as (destination, protocol, destination port, is a SYN)."""

    def __init__(self, ns):
        with inside(ns):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.sock.setblocking(False)

    def take(self):
        out = []
        while True:
            try:
                data = self.sock.recv(2048)
            except BlockingIOError:
                return out
            version = data[0] >> 4
            if version == 4:
                at, proto, to = (data[0] & 15) * 4, data[9], socket.inet_ntoa(data[16:20])
            elif version == 6:
                at, proto, to = 40, data[6], socket.inet_ntop(socket.AF_INET6, data[24:40])
            else:
                continue
            port = struct.unpack(">H", data[at + 2 : at + 4])[0] if proto in (6, 17) else 0
            syn = proto == 6 and data[at + 13] & 0x12 == 2
            out.append((to, proto, port, syn))

    def close(self):
        self.sock.close()


class Lab:
    def __init__(self):
        tag = secrets.token_hex(3)
        self.a, self.b = f"stkp{tag}", f"stko{tag}"
        self.origins = {}
        run("ip", "netns", "add", self.a)
        run("ip", "netns", "add", self.b)
        va, vb = f"va{tag}", f"vb{tag}"
        run("ip", "link", "add", va, "netns", self.a, "type", "veth", "peer", "name", vb, "netns", self.b)
        for ns, dev, v4, v6 in ((self.a, va, PROXY_V4, PROXY_V6), (self.b, vb, ORIGIN_V4, ORIGIN_V6)):
            run("ip", "-n", ns, "link", "set", "lo", "up")
            run("ip", "-n", ns, "addr", "add", f"{v4}/30", "dev", dev)
            run("ip", "-n", ns, "addr", "add", f"{v6}/64", "dev", dev, "nodad")
            run("ip", "-n", ns, "link", "set", dev, "up")
        self.device = va
        run("ip", "-n", self.a, "route", "add", "default", "via", ORIGIN_V4)
        run("ip", "-n", self.a, "-6", "route", "add", "default", "via", ORIGIN_V6)
        run("ip", "-n", self.b, "route", "add", "local", "default", "dev", "lo", "table", "main")
        run("ip", "-n", self.b, "-6", "route", "add", "local", "::/0", "dev", "lo", "table", "main")
        self.dns = Dns(self.b)
        self.capture = Capture(self.a)

    def origin(self, port, serve=None):
        if port in self.origins:
            if serve is None:
                return self.origins[port]
            self.origins.pop(port).close()
        self.origins[port] = Origin(self.b, port, serve)
        return self.origins[port]

    def close(self):
        for origin in self.origins.values():
            origin.close()
        self.dns.close()
        self.capture.close()
        for ns in (self.a, self.b):
            subprocess.run(["ip", "netns", "del", ns], check=False)


class Proxy:
    """The real program, standalone, in the lab's first namespace."""

    def __init__(self, binary, lab, folder, policy, resolvers=(f"{ORIGIN_V4}:53",), listen=None, before=None):
        self.folder = folder
        self.policy_path, self.records_path = folder / "policy.json", folder / "records.jsonl"
        self.write_policy(policy)
        self.socket_path = str(folder / "s")
        argv = ["ip", "netns", "exec", lab.a, str(binary), "--listen", listen or f"unix:{self.socket_path}"]
        argv += ["--policy", str(self.policy_path), "--records", str(self.records_path)]
        for resolver in resolvers:
            argv += ["--resolver", resolver]
        self.errors = open(folder / "stderr", "wb+")
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, preexec_fn=before)
        self.ready = self.proc.stdout.readline().decode()
        assert self.ready.startswith("ready "), (self.ready, self.stderr())
        if listen is None:
            os.chmod(self.socket_path, 0o777)
        self.lab, self.listen = lab, listen

    def write_policy(self, policy):
        text = policy if isinstance(policy, str) else json.dumps(policy)
        self.policy_path.write_text(text)

    def reload(self, policy):
        self.write_policy(policy)
        self.proc.send_signal(signal.SIGHUP)

    def child(self):
        path = f"/proc/{self.proc.pid}/task/{self.proc.pid}/children"
        return int(open(path).read().split()[0])

    def stderr(self):
        return (self.folder / "stderr").read_text()

    def connect(self):
        if self.listen:
            host, port = self.ready.split()[1].rsplit(":", 1)
            with inside(self.lab.a):
                sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.settimeout(TIME)
            sock.connect((host, int(port)))
            return sock
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(TIME)
        sock.connect(self.socket_path)
        return sock

    def records(self):
        lines = self.records_path.read_text().splitlines()
        return [json.loads(line) for line in lines]

    def wait_records(self, n, timeout=TIME):
        return wait_for(f"{n} records", lambda: (r := self.records()) and len(r) >= n and r, timeout)

    def stop(self):
        if self.proc.poll() is None:
            self.proc.terminate()
        status = self.proc.wait(10)
        self.errors.close()
        self.proc.stdout.close()
        return status


def read_head(sock):
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            break
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1]) if head.startswith(b"HTTP/1.") else 0
    return status, head, rest


def read_all(sock):
    data = b""
    try:
        while more := sock.recv(65536):
            data += more
    except ConnectionResetError:
        pass
    return data


def answer(sock):
    """Status, head, and the whole body up to the close."""
    status, head, rest = read_head(sock)
    return status, head, rest + read_all(sock)


def connect_request(host, port=443):
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode("latin-1")


def tunnel(proxy, host, port=443):
    sock = proxy.connect()
    sock.sendall(connect_request(host, port))
    status, head, rest = read_head(sock)
    assert status == 200, (status, head, rest)
    assert rest == b""
    return sock

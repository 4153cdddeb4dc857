"""TLS ClientHellos, made by hand so that they can be odd."""
import os
import struct


def extension(kind, data):
    return struct.pack(">HH", kind, len(data)) + data


def sni(*names, kind=0):
    entries = b"".join(bytes([kind]) + struct.pack(">H", len(n)) + n for n in (name.encode() for name in names))
    return extension(0, struct.pack(">H", len(entries)) + entries)


def hello(*extensions, padding=0):
    more = [extension(43, b"\x02\x03\x04"), *extensions]
    if padding:
        more.append(extension(21, bytes(padding)))
    body = b"\x03\x03" + os.urandom(32) + b"\x20" + os.urandom(32) + b"\x00\x04\x13\x01\x13\x02" + b"\x01\x00"
    packed = b"".join(more)
    body += struct.pack(">H", len(packed)) + packed
    return b"\x01" + len(body).to_bytes(3, "big") + body


def records(message, size=16384):
    parts = [message[i : i + size] for i in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(part)) + part for part in parts)

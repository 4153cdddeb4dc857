"""Multipart forms, byte for byte."""
BOUNDARY = b"----stk7MA4YWxkTrZu0gW"
TYPE = f"Content-Type: multipart/form-data; boundary={BOUNDARY.decode()}"


def part(filename, data, name=b"file", disposition=None):
    if isinstance(filename, str):
        filename = filename.encode("utf-8", "surrogateescape")
    if disposition is None:
        quoted = filename.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        disposition = b'form-data; name="' + name + b'"; filename="' + quoted + b'"'
    return (b"--" + BOUNDARY + b"\r\nContent-Disposition: " + disposition
            + b"\r\nContent-Type: application/octet-stream\r\n\r\n" + data + b"\r\n")


def end():
    return b"--" + BOUNDARY + b"--\r\n"


def form(filename, data, **more):
    return part(filename, data, **more) + end()


def upload(client, filename, data, query="", **more):
    return client.call("POST", f"/upload{query}", form(filename, data, **more), (TYPE,))

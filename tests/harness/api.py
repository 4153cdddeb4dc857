"""A small client of the HTTP API, over TCP or a Unix socket."""
import http.client
import json
import socket

PLATFORM = "/api/admin/platform/agent-sandbox"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def problem(self, status=None, code=None, pointer=None):
        """Checks that this is a complete problem+json body, and returns it."""
        assert self.status >= 400, self
        assert self.headers["Content-Type"] == "application/problem+json", self
        body = self.json
        assert {"type", "title", "status", "detail", "code", "retryable", "request_id"} <= set(body), self
        assert body["status"] == self.status, self
        assert body["detail"] and "\n" not in body["detail"], self
        assert status is None or self.status == status, self
        assert code is None or body["code"] == code, self
        assert pointer is None or body.get("pointer") == pointer, self
        return body

    def __repr__(self):
        return f"{self.status} {self.body[:600]!r}"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Api:
    def __init__(self, url, token=None):
        self.url, self.token = url, token

    def with_token(self, token):
        return Api(self.url, token)

    def connection(self, timeout=90):
        if self.url.startswith("unix:"):
            return UnixConnection(self.url[5:], timeout)
        return http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=timeout)

    def call(self, method, path, body=None, headers=(), timeout=90):
        """body: bytes as they are, anything else as JSON."""
        sent = dict(headers)
        if self.token and "Authorization" not in sent:
            sent["Authorization"] = f"Bearer {self.token}"
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = self.connection(timeout)
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.call("POST", path, body, **more)

    def put(self, path, body=None, **more):
        return self.call("PUT", path, body, **more)

    def ok(self, method, path, body=None, status=(200, 201, 202), **more):
        answer = self.call(method, path, body, **more)
        assert answer.status in status, f"{method} {path}: {answer}"
        return answer.json

    def configure(self, agents, enabled=True, **more):
        """PUTs the whole agent-sandbox document."""
        return self.ok("PUT", PLATFORM, {"enabled": enabled, "agents": agents, "reason": "test", **more})

    def run(self, agent, command, **more):
        """A waiting run; the result."""
        return self.ok("POST", f"{PLATFORM}/run", {"agent": agent, "command": command, **more}, status=(200,))

    def submit(self, agent, command, headers=(), **more):
        return self.ok("POST", "/v1/runs", {"agent": agent, "command": command, **more}, status=(202,), headers=headers)["id"]

    def pages(self, path, member):
        """Every item of a paged listing."""
        items, cursor = [], None
        while True:
            page = self.ok("GET", path + ("&" if "?" in path else "?") + f"limit=200{'&cursor=' + cursor if cursor else ''}")
            items += page[member]
            cursor = page["next"]
            if not cursor:
                return items

    def audit(self, query=""):
        return self.pages(f"/v1/audit{query}", "rows")

    def events(self, run, last_event_id=None, timeout=60):
        """The server-sent events of a run, one (id, event, data) each, until the stream ends."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if last_event_id is not None:
            headers["Last-Event-ID"] = str(last_event_id)
        connection = self.connection(timeout)
        connection.request("GET", f"/v1/runs/{run}/events", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        fields = {}
        for raw in answer:
            line = raw.decode().rstrip("\n")
            if line.startswith(":"):
                continue
            if line:
                name, _, value = line.partition(": ")
                fields[name] = fields[name] + "\n" + value if name in fields else value
            elif fields:
                yield fields.get("id"), fields.get("event"), json.loads(fields.get("data", "null"))
                fields = {}
        connection.close()

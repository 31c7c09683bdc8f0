#!/usr/bin/env python3
"""A collector of OpenTelemetry's traces, and workers that send to it, alone and behind `rbee serve`.
Usage: traces.py WORKER RBEE SD_WORKER PICTURE_MODEL

WORKER answers with a script. Names of attributes are held against those of the Python package
opentelemetry-semantic-conventions where it is installed."""

import base64
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 60
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """Keeps spans by their trace. mode: "good", "refuses" (500), "slow" (never answers).
    certificate: a file in PEM form with its key; without one it speaks plain HTTP. clients: a file
    with those that may vouch for who sends; without one anybody may."""

    def __init__(self, mode="good", certificate=None, clients=None):
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, self.headers, json.loads(body))
                if mode == "slow":
                    time.sleep(PATIENCE)
                self.send_response(500 if mode == "refuses" else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.spans, self.resources, self.paths, self.tenants = [], [], set(), set()
        self.changed = threading.Condition()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            if clients:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(clients)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.url = f"https://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path, headers, message):
        with self.changed:
            self.paths.add(path)
            self.tenants.add(headers.get("x-tenant"))
            for resource in message["resourceSpans"]:
                facts = attributes(resource["resource"])
                self.resources.append(facts)
                for span in resource["scopeSpans"][0]["spans"]:
                    self.spans.append({**span, "service": facts["service.name"]})
            self.changed.notify_all()

    def wait(self, what, enough):
        with self.changed:
            done = self.changed.wait_for(lambda: enough(self.spans), PATIENCE)
            assert done, f"{what} did not come: {[span['name'] for span in self.spans]}"
            return list(self.spans)


def attributes(holder):
    values = {}
    for entry in holder["attributes"]:
        (kind, value), = entry["value"].items()
        if kind == "arrayValue":
            value = [list(item.values())[0] for item in value["values"]]
        values[entry["key"]] = int(value) if kind == "intValue" else value
    return values


@contextlib.contextmanager
def program(command, environment):
    """A worker or a front: its port, the lines of its log so far, and at the end its exit status and
    log."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={"PATH": os.environ["PATH"], "LLORCH_LOG_FORMAT": "json",
                                    "OTEL_BSP_SCHEDULE_DELAY": "20", **environment})
    said = []
    end = {"said": said}
    try:
        for line in process.stdout:
            said.append(line)
            found = re.search(r'"message":"ready".*"port":"(\d+)"', line)
            if found:
                break
        assert found, "".join(said)
        reader = threading.Thread(target=lambda: said.extend(process.stdout))
        reader.start()
        yield int(found.group(1)), end
        process.send_signal(signal.SIGTERM)
        end["status"] = process.wait(PATIENCE)
        reader.join()
        end["log"] = "".join(said)
    finally:
        process.kill()
        process.wait()


def ask(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request(method, path, json.dumps(body) if body else None,
                       {"Content-Type": "application/json", **(headers or {})})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, content.decode()


def chat(port, headers=None, stream=False, expected=200):
    status, text = ask(port, "POST", "/v1/chat/completions",
                       {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9,
                        "temperature": 0.5, "stop": ["zzz"], "stream": stream}, headers)
    assert status == expected, (status, text)
    return text


def named(spans, name):
    found = [span for span in spans if span["name"] == name]
    assert len(found) == 1, (name, [span["name"] for span in spans])
    return found[0]


def below(child, parent):
    assert child["parentSpanId"] == parent["spanId"] and child["traceId"] == parent["traceId"]
    begin, end = int(child["startTimeUnixNano"]), int(child["endTimeUnixNano"])
    assert int(parent["startTimeUnixNano"]) <= begin <= end
    assert re.fullmatch("[0-9a-f]{16}", child["spanId"])
    return begin, end


def inside(child, parent):
    begin, end = below(child, parent)
    assert end <= int(parent["endTimeUnixNano"])
    return begin, end


def check_names(spans):
    """Every attribute below gen_ai. is a standard one."""
    try:
        from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as known
    except ImportError:
        print("names of attributes are not checked: no opentelemetry-semantic-conventions")
        return
    names = {value for name, value in vars(known).items() if name.startswith("GEN_AI")}
    for span in spans:
        for name in attributes(span):
            assert not name.startswith("gen_ai.") or name in names, name


def check_chat(worker):
    collector = Collector()
    with program([worker, "--model", "any", "--port", "0", "--worker-id", "w7", "--model-ref",
                  "hf:tiny/chat", "--otlp-endpoint", collector.url],
                 {"OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=the%20bees", "OTEL_SERVICE_NAME": "hive",
                  "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test"}) as (port, end):
        for _ in range(3):
            assert ask(port, "GET", "/health")[0] == 200
        chat(port, {"traceparent": f"00-{TRACE}-{PARENT}-01"}, stream=True)
        spans = collector.wait("the request", lambda spans: len(spans) >= 5)
        assert len(spans) == 5, [span["name"] for span in spans]  # none of /health
        request, work = named(spans, "POST /v1/chat/completions"), named(spans, "chat hf:tiny/chat")
        assert (request["traceId"], request["parentSpanId"], request["kind"]) == (TRACE, PARENT, 2)
        facts = attributes(request)
        assert facts["http.response.status_code"] == 200 and facts["http.request.method"] == "POST"
        assert facts["http.route"] == facts["url.path"] == "/v1/chat/completions", facts
        inside(work, request)
        last = 0
        for name in ("queue", "prompt", "generation"):
            begin, finish = inside(named(spans, name), work)
            assert last in (0, begin), "a stage begins where the one before ends"
            last = finish
        facts = attributes(work)
        expected = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "rbee",
                    "gen_ai.request.model": "hf:tiny/chat", "gen_ai.request.max_tokens": 9,
                    "gen_ai.request.temperature": 0.5, "gen_ai.request.stop_sequences": ["zzz"],
                    "gen_ai.response.model": "fake-model", "gen_ai.usage.input_tokens": 5,
                    "gen_ai.usage.output_tokens": 3, "gen_ai.response.finish_reasons": ["EOS"]}
        assert expected.items() <= facts.items(), facts
        check_names(spans)
        # Not sampled: no spans. Without a parent a trace begins.
        chat(port, {"traceparent": f"00-{TRACE}-{PARENT}-00"})
        chat(port)
        chat(port, {"traceparent": "garbage"})
        spans = collector.wait("two requests", lambda spans: len(spans) >= 15)[5:]
        roots = [span for span in spans if "parentSpanId" not in span]
        assert len(spans) == 10 and len(roots) == 2 and TRACE not in str(spans), spans
        assert roots[0]["traceId"] != roots[1]["traceId"]
        # Failed requests are errors; the last spans are sent at the end.
        chat(port, {"X-Correlation-ID": "last"})
    assert end["status"] == 0, end
    assert "last" in str(collector.spans), "the last spans were not sent"
    assert collector.paths == {"/v1/traces"} and collector.tenants == {"the bees"}
    expected = {"service.name": "hive", "service.instance.id": "w7",
                "deployment.environment.name": "test"}
    assert expected.items() <= collector.resources[0].items(), collector.resources[0]


def check_failure(worker):
    """The device is lost during an answer."""
    collector = Collector()
    with program([worker, "--model", "lost", "--port", "0", "--model-ref", "m"],
                 {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url + "/"}) as (port, _):
        chat(port, expected=503)
        spans = collector.wait("the failure", lambda spans: len(spans) >= 5)
        for name in ("POST /v1/chat/completions", "chat m"):
            assert named(spans, name)["status"]["code"] == 2
        assert attributes(named(spans, "chat m"))["error.type"] == "WORKER_UNHEALTHY"


def lost_spans(port):
    return sum(float(value) for value in re.findall(
        r'rbee_trace_spans_total\{outcome="(?:dropped|refused)"\} (\d+)', ask(port, "GET", "/metrics")[1]))


def check_bad_collectors(worker):
    """Whatever the collector does, answers are the same, and the worker ends normally."""
    with Closed() as closed:
        for url in (closed.url, Collector("refuses").url, Collector("slow").url):
            with program([worker, "--model", "any", "--port", "0"],
                         {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": url + "/v1/traces",
                          "OTEL_BSP_MAX_QUEUE_SIZE": "7"}) as (port, end):
                for i in range(20):
                    assert "Hello, world" in chat(port)
                deadline = time.monotonic() + PATIENCE
                while lost_spans(port) < 70:  # an answer comes before its last spans
                    assert time.monotonic() < deadline, ask(port, "GET", "/metrics")[1]
                    time.sleep(0.02)
            assert end["status"] == 0, end


def make_certificate(folder, name):
    """A self-signed one for localhost: its file, its key's, and one with both."""
    file, key, both = (f"{folder}/{name}{end}.pem" for end in ("", "-key", "-both"))
    subprocess.run(["/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", file, "-days",
                    "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                   check=True, capture_output=True)
    pathlib.Path(both).write_bytes(b"".join(pathlib.Path(part).read_bytes() for part in (file, key)))
    return file, key, both


def check_sends(collector, command, environment):
    seen = len(collector.spans)
    with program(command, environment) as (port, end):
        chat(port)
        collector.wait("spans through TLS", lambda spans: len(spans) >= seen + 5)
    assert end["status"] == 0, end


def check_sends_nothing(collector, command, environment, why):
    seen = len(collector.spans)
    with program(command, environment) as (port, end):
        chat(port)
        # A stopping worker gives up on its collector soon.
        deadline = time.monotonic() + PATIENCE
        while not any(re.search(why, line) for line in list(end["said"])):
            assert time.monotonic() < deadline, end
            time.sleep(0.02)
    assert end["status"] == 0, end
    assert len(collector.spans) == seen


def check_tls(worker):
    """A collector whose certificate is trusted only through a file."""
    with tempfile.TemporaryDirectory() as folder:
        file, _, both = make_certificate(folder, "collector")
        collector = Collector(certificate=both)
        command = [worker, "--model", "any", "--port", "0", "--otlp-endpoint", collector.url]
        for name in ("OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"):
            check_sends(collector, command,
                        {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere.pem", name: file})
        check_sends_nothing(collector, command, {}, "self-signed certificate")


def check_client_certificate(worker, rbee):
    """A collector that accepts only clients whose certificate a file vouches for."""
    prefix, signals = "OTEL_EXPORTER_OTLP_", ("", "TRACES_")
    with tempfile.TemporaryDirectory() as folder:
        server, _, both = make_certificate(folder, "collector")
        mine, key, _ = make_certificate(folder, "mine")
        other, other_key, _ = make_certificate(folder, "other")
        collector = Collector(certificate=both, clients=mine)
        command = [worker, "--model", "any", "--port", "0", "--otlp-endpoint", collector.url]

        def variables(certificate, key, signal=""):
            return {f"{prefix}CERTIFICATE": server,
                    f"{prefix}{signal}CLIENT_CERTIFICATE": certificate,
                    f"{prefix}{signal}CLIENT_KEY": key}

        for signal in signals:
            check_sends(collector, command,
                        {**variables("/nowhere.pem", "/nowhere.pem"), **variables(mine, key, signal)})
        # TLS 1.3 servers refuse while the message is already being sent: their connection may be
        # gone before the reason has been read.
        for environment, why in (({f"{prefix}CERTIFICATE": server}, "certificate required"),
                                 (variables(other, other_key), "unknown ca")):
            check_sends_nothing(collector, command, environment,
                                f"takes no spans.*({why}|Connection reset|Broken pipe)")

        # Unusable files are reported before the model is loaded.
        for command in ([worker, "--model", "missing", "--port", "0", "--otlp-endpoint",
                         collector.url],
                        [rbee, "serve", "--model", "any", "--port", "0", "--otlp-endpoint",
                         collector.url]):
            for environment, why in (
                    (variables(mine, ""), f"{prefix}CLIENT_KEY: is not set"),
                    (variables("", key, "TRACES_"), f"{prefix}CLIENT_CERTIFICATE: is not set"),
                    (variables("/nowhere.pem", key), "/nowhere.pem is no certificate"),
                    (variables(mine, "/nowhere.pem"), "/nowhere.pem is no private key"),
                    (variables(mine, other_key),
                     f"{prefix}CLIENT_KEY: .*{other_key} is no private key of {mine}")):
                ended = subprocess.run(command, env={"PATH": os.environ["PATH"], **environment},
                                       capture_output=True, text=True, timeout=PATIENCE, check=False)
                said = ended.stdout + ended.stderr
                assert ended.returncode == 1 and re.search(why, said), (why, said)


def check_samplers(rbee, worker):
    """The front and its workers record a trace that begins at the front whole or not at all."""
    collector = Collector()
    config = {"models": [{"name": "m", "model": "any", "program": worker}]}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        with program([rbee, "serve", "--config", file.name, "--port", "0", "--otlp-endpoint",
                      collector.url],
                     {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
                      "OTEL_TRACES_SAMPLER_ARG": "0.5"}) as (port, end):
            for _ in range(40):
                chat(port)
            chat(port, {"traceparent": f"00-{TRACE}-{PARENT}-01"})
            collector.wait("the last", lambda spans: sum(
                span["traceId"] == TRACE for span in spans) == 6)
        assert end["status"] == 0, end
    traces = {}
    for span in collector.spans:
        traces.setdefault(span["traceId"], []).append(span)
    del traces[TRACE]
    assert 1 <= len(traces) < 40, len(traces)
    for trace, spans in traces.items():
        assert int(trace[16:], 16) < 2**63, trace
        assert len(spans) == 6 and len([s for s in spans if "parentSpanId" not in s]) == 1, spans
    collector = Collector()
    with program([worker, "--model", "any", "--port", "0", "--otlp-endpoint", collector.url],
                 {"OTEL_TRACES_SAMPLER": "always_off"}) as (port, end):
        chat(port, {"traceparent": f"00-{TRACE}-{PARENT}-01"})
    assert end["status"] == 0 and not collector.spans, collector.spans


class Closed:
    """A port without a listener."""

    def __enter__(self):
        import socket
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        return self

    def __exit__(self, *_):
        self.socket.close()


def check_front(rbee, worker):
    collector = Collector()
    config = {"models": [{"name": "m", "model": "any", "program": worker}]}
    path = f"/tmp/rbee-traces-{os.getpid()}.json"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    try:
        with program([rbee, "serve", "--config", path, "--port", "0", "--otlp-endpoint",
                      collector.url], {}) as (port, end):
            chat(port, {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=b"}, stream=True)
            spans = collector.wait("both programs' spans", lambda spans: len(spans) >= 6)
            front = [span for span in spans if span["service"] == "rbee serve"]
            assert len(front) == 1 and front[0]["parentSpanId"] == PARENT, front
            # The front may finish before the worker, which has sent its answer.
            below(named(spans, "POST /v1/chat/completions"), front[0])
            assert {span["traceId"] for span in spans} == {TRACE}
            figures = ask(port, "GET", "/metrics")[1]
            for name in ("front", "m-0"):
                assert f'rbee_trace_spans_total{{worker="{name}",outcome="dropped"}} 0' in figures
            assert figures.count("# TYPE rbee_trace_spans_total counter") == 1
        assert end["status"] == 0, end
    finally:
        os.remove(path)


def check_pictures(worker, model):
    collector = Collector()
    with program([worker, "--model-path", model, "--port", "0", "--threads", "1", "--model-ref",
                  "hf:tiny/draws", "--otlp-endpoint", collector.url], {}) as (port, _):
        status, text = ask(port, "POST", "/v1/images/generations",
                           {"prompt": "a bee", "size": "64x64", "steps": 2, "n": 1})
        assert status == 200 and base64.b64decode(json.loads(text)["data"][0]["b64_json"]), text
        spans = collector.wait("the picture", lambda spans: len(spans) >= 6)
        work = named(spans, "generate_content hf:tiny/draws")
        inside(work, named(spans, "POST /v1/images/generations"))
        last = 0
        for name in ("queue", "text", "steps", "decode"):
            begin, finish = inside(named(spans, name), work)
            assert last in (0, begin)
            last = finish
        facts = attributes(work)
        assert facts["gen_ai.output.type"] == "image" and facts["rbee.image.steps"] == 2, facts
        check_names(spans)


def main():
    worker, rbee, pictures, model = sys.argv[1:5]
    check_chat(worker)
    check_failure(worker)
    check_bad_collectors(worker)
    check_tls(worker)
    check_client_certificate(worker, rbee)
    check_front(rbee, worker)
    check_samplers(rbee, worker)
    check_pictures(pictures, model)


if __name__ == "__main__":
    main()

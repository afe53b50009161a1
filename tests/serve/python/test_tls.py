"""The server with a certificate: TLS only, and the same gate."""

import http.client
import os
import re
import socket
import ssl
import subprocess

import pytest

TOKEN = os.environ["QWEN_SERVE_TOKEN"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    place = tmp_path_factory.mktemp("tls")
    files = [str(place / name) for name in ("cert.pem", "key.pem")]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-out", files[0], "-keyout", files[1]],
        check=True, capture_output=True,
    )
    return files


@pytest.fixture(params=["127.0.0.1:0", "0.0.0.0:0"])
def port(request, certificate, tmp_path):
    cert, key = certificate
    flags = ["--allow-remote"] if request.param.startswith("0") else []
    command = [os.environ["QWEN_BIN"], "serve", "--listen", request.param, "--workspace", str(tmp_path), "--tls-cert", cert, "--tls-key", key, *flags]
    env = {**os.environ, "QWEN_HOME": str(tmp_path / "home"), "QWEN_SERVER_TOKEN": TOKEN}
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
    try:
        line = server.stderr.readline()
        assert "serving on https://" in line, line
        yield int(re.search(r":(\d+)/", line).group(1))
    finally:
        server.terminate()
        server.wait(timeout=40)
        server.stderr.close()


def get(port, certificate, path, headers):
    context = ssl.create_default_context(cafile=certificate[0])
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_tls_is_served_behind_the_same_gate(port, certificate):
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    own = f"https://127.0.0.1:{port}"
    for headers, status in [
        ({}, 401),
        ({"Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        (bearer, 200),
        ({**bearer, "Origin": own}, 200),
        ({**bearer, "Origin": own.replace("https", "http")}, 403),
        ({**bearer, "Host": f"evil.example:{port}"}, 403),
    ]:
        assert get(port, certificate, "/api/sessions", headers) == status, headers


def test_plain_http_gets_no_answer_from_a_tls_port(port, certificate):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
        plain.sendall(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        answer = b""
        try:
            while piece := plain.recv(4096):
                answer += piece
        except ConnectionResetError:
            pass
    assert b"HTTP/1.1 200" not in answer
    assert get(port, certificate, "/health", {}) == 200

import os
import socket

import pytest

from labctl.errors import PreflightFailed
from labctl.host.processes import own_identity
from labctl.servers.sockets import listeners, prove_port_free


def test_a_free_port_is_proved_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    prove_port_free("127.0.0.1", port)
    assert listeners(port, [own_identity()]) == ()


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 (a stranger that listens everywhere)
def test_a_listener_is_found_even_where_it_would_share(address: str) -> None:
    with socket.create_server((address, 0), reuse_port=True) as server:
        port = server.getsockname()[1]
        with pytest.raises(PreflightFailed, match=r"a free port, got a listener on .* \[PORT_TAKEN\]"):
            prove_port_free("127.0.0.1", port)


def test_a_listener_for_both_kinds_of_address_is_found() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        port = server.getsockname()[1]
        assert [found.address for found in listeners(port, ())] == ["::"]
        with pytest.raises(PreflightFailed):
            prove_port_free("127.0.0.1", port)


def test_a_bound_port_that_does_not_listen_yet_is_taken() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        with pytest.raises(PreflightFailed, match="PORT_TAKEN"):
            prove_port_free("127.0.0.1", holder.getsockname()[1])


def test_connections_that_are_only_waiting_to_be_forgotten_do_not_take_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # the server's end closes first, so the port goes to TIME_WAIT
        assert client.recv(1) == b""
        client.close()
    with socket.socket() as plain, pytest.raises(OSError, match="in use"):
        plain.bind(("127.0.0.1", port))
    prove_port_free("127.0.0.1", port)


def test_the_owner_is_named_only_among_the_processes_that_were_asked_about() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (ours,) = listeners(port, [own_identity()])
        assert (ours.address, ours.owner_pids) == ("127.0.0.1", (os.getpid(),))
        assert ours.inode == os.fstat(server.fileno()).st_ino
        (nobody,) = listeners(port, ())
        assert nobody.owner_pids == ()


def test_every_listener_is_listed() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as first:
        port = first.getsockname()[1]
        with socket.create_server(("127.0.0.1", port), reuse_port=True) as second:
            inodes = {os.fstat(each.fileno()).st_ino for each in (first, second)}
            assert {found.inode for found in listeners(port, ())} == inodes

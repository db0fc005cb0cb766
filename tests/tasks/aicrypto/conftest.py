"""What tests of own challenges share: playing an instance with our own solution."""

from __future__ import annotations

import pytest

from tasks.aicrypto.ctf import forge
from tasks.aicrypto.ctf.solutions.tube import Tube


def _solve(family: str, made) -> str:
    with forge._connections(made.server) as connect:
        return forge.solution(family)(made.public, connect)


@pytest.fixture
def play():
    """(made, family name or Family) -> the flag that our solution finds, seeing what a model sees."""

    def run(made, family) -> str:
        return _solve(family if isinstance(family, str) else family.name, made)

    return run


@pytest.fixture
def connections():
    """(server files) -> context manager that gives `connect`, as a solution gets it."""
    return forge._connections


@pytest.fixture
def tube_type():
    return Tube

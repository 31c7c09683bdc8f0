"""Shared by the scripts of Ollama's Python client."""

import ollama


def refused(ask, status):
    """ask() ends in an error of this status."""
    try:
        ask()
    except ollama.ResponseError as error:
        assert error.status_code == status, error
    else:
        raise AssertionError("taken")

"""Answers the worker's control requests and matches answers to ours."""

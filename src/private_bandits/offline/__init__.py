"""Logs of past rewards: reading them, starting an agent from one, trying a policy on one."""

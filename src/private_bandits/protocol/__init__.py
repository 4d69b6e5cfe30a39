"""The two things that the service and its clients agree on: who may call what, and how a problem is told."""

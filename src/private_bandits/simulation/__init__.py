"""The fast engines: exact in distribution, checked against agent.py. Simulated noise protects nobody."""

from private_bandits.simulation.run import Simulation, simulate

__all__ = ["Simulation", "simulate"]

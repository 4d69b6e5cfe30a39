"""A service that runs bandits in a database: any worker may serve any bandit. Needs the extra [service]."""

from private_bandits.loading import require

require("the service", "service")

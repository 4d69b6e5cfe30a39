"""Does an implementation keep its promise? An audit for any agent that has ask and tell."""

from private_bandits.audit.audit_report import FAILURE, AuditPart, Report, html
from private_bandits.audit.file_noise import FileNoise, audit_file
from private_bandits.audit.run import SHORT, Thoroughness, audit, audit_all, to_dict
from private_bandits.audit.target import Target, of_factory, of_policy, shipped

__all__ = [
    "FAILURE",
    "SHORT",
    "AuditPart",
    "FileNoise",
    "Report",
    "Target",
    "Thoroughness",
    "audit",
    "audit_all",
    "audit_file",
    "html",
    "of_factory",
    "of_policy",
    "shipped",
    "to_dict",
]

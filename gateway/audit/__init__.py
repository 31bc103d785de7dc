"""The linkability audit: embeddings and who they are of in, a report with bounds out (paper A, made sound).

Says what an attacker could do with these embeddings; claims no anonymity. Decisions live in the gate and the ledger.
"""

from gateway.audit.comparison import compare
from gateway.audit.inputs import AuditInput, read_inputs
from gateway.audit.measures import measure
from gateway.audit.options import Options
from gateway.audit.page import write_report

__all__ = ["AuditInput", "Options", "compare", "measure", "read_inputs", "write_report"]

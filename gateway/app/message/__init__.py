"""What people are told without asking: notices off the ledger and the machine, by webhook and mail."""

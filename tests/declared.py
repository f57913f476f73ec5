"""What the systems declare, by name: stages as they stand, tables each once."""

from curvote.chain.lookup import all_systems
from curvote.chain.stage import Stage, Table

STAGES: tuple[Stage, ...] = tuple(s for one in all_systems() for s in one.all_stages)
TABLES: dict[str, Table] = {t.name: t for one in all_systems() for t in one.tables}
SERVER = [name for name, table in TABLES.items() if table.side == "server"]

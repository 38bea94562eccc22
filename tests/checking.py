"""The run-time type checker: beartype, with a whole number allowed where a float is meant."""

from beartype import BeartypeConf, beartype

typechecker = beartype(conf=BeartypeConf(is_pep484_tower=True))

#!/usr/bin/env python3
"""Writes tests/units/grammar/data/pydantic.json: the schemas that pydantic writes for its types.

python3 -m venv VENV && VENV/bin/pip install pydantic==2.12.4 email-validator
VENV/bin/python tools/goldens/make_pydantic_schemas.py
"""

import datetime
import decimal
import enum
import fractions
import ipaddress
import json
import pathlib
import re
import typing as t
import uuid

import arguments

arguments.read(__name__, __doc__)

import pydantic as p


class Color(enum.Enum):
    red = "red"
    blue = "blue"


class N(enum.IntEnum):
    a = 1
    b = 2


class Base(p.BaseModel):
    x: int


class Sub(Base):
    y: t.Optional[str] = None
    kids: list["Sub"] = []


class Cat(p.BaseModel):
    kind: t.Literal["cat"]
    n: int


class Dog(p.BaseModel):
    kind: t.Literal["dog"]
    w: float


class Forbid(p.BaseModel):
    model_config = dict(extra="forbid")
    a: int = 1
    b: str


class Allow(p.BaseModel):
    model_config = dict(extra="allow")
    a: int = 1


TYPES = dict(
    int=int,
    float=float,
    str=str,
    bool=bool,
    bytes=bytes,
    none=type(None),
    date=datetime.date,
    datetime=datetime.datetime,
    time=datetime.time,
    timedelta=datetime.timedelta,
    decimal=decimal.Decimal,
    uuid=uuid.UUID,
    enum=Color,
    intenum=N,
    path=pathlib.Path,
    ipv4=ipaddress.IPv4Address,
    ipv6=ipaddress.IPv6Address,
    ipn4=ipaddress.IPv4Network,
    ipn6=ipaddress.IPv6Network,
    ipi=ipaddress.IPv4Interface,
    any=t.Any,
    lst=list[int],
    tup=tuple[int, str],
    tupv=tuple[int, ...],
    set_=set[str],
    setint=set[int],
    frozenset=frozenset[int],
    dict_=dict[str, int],
    dictint=dict[int, str],
    lit=t.Literal["a", 1, None],
    opt=t.Optional[int],
    union=t.Union[int, str, list[float]],
    sub=Sub,
    disc=t.Annotated[t.Union[Cat, Dog], p.Field(discriminator="kind")],
    forbid=Forbid,
    allow=Allow,
    posint=p.PositiveInt,
    negf=p.NegativeFloat,
    nonneg=p.NonNegativeInt,
    conint=p.conint(ge=1, lt=10, multiple_of=3),
    constr=p.constr(min_length=1, max_length=20, pattern="^[a-z]+$"),
    condec=p.condecimal(max_digits=5, decimal_places=2),
    condec2=p.condecimal(gt=0, max_digits=10, decimal_places=2),
    email=p.EmailStr,
    nameemail=p.NameEmail,
    http=p.HttpUrl,
    anyurl=p.AnyUrl,
    anyhttp=p.AnyHttpUrl,
    fileurl=p.FileUrl,
    pg=p.PostgresDsn,
    redis=p.RedisDsn,
    secret=p.SecretStr,
    secretb=p.SecretBytes,
    json_=p.Json,
    jsonint=p.Json[int],
    uuid4=p.UUID4,
    pastdate=p.PastDate,
    aware=p.AwareDatetime,
    naive=p.NaiveDatetime,
    b64=p.Base64Str,
    bytesize=p.ByteSize,
    finite=p.FiniteFloat,
    strictint=p.StrictInt,
    filep=p.FilePath,
    ipany=p.IPvAnyAddress,
    ipanyn=p.IPvAnyNetwork,
    jsonv=p.JsonValue,
    pattern=re.Pattern,
    fraction=fractions.Fraction,
    complex_=complex,
)


def main():
    out = []
    for name, kind in TYPES.items():
        out.append({"name": name, "schema": p.TypeAdapter(kind).json_schema()})
    folder = pathlib.Path(__file__).resolve().parents[2] / "tests/units/grammar/data"
    lines = ",\n".join(" " + json.dumps(one) for one in out)
    (folder / "pydantic.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


main()

# cython: language_level=3
"""Body of arrow_schema.pxd."""

from libc.stdint cimport int64_t
from libc.string cimport strncmp

from pulsarx import errors

cdef dict NAMES = {
    "n": "null", "b": "bool", "c": "int8", "C": "uint8", "s": "int16", "S": "uint16",
    "i": "int32", "I": "uint32", "l": "int64", "L": "uint64", "e": "float16", "f": "float32",
    "g": "float64", "z": "binary", "Z": "large_binary", "u": "string", "U": "large_string",
    "vz": "binary_view", "vu": "string_view", "tdD": "date32", "tdm": "date64", "+l": "list",
    "+L": "large_list", "+s": "struct", "+m": "map", "+r": "run_end_encoded",
}
cdef dict UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


cdef str arrow_type_name(const ArrowSchema* schema):
    if schema.format == NULL:
        return "a type without a format"
    cdef str format = schema.format.decode("utf-8", "replace")
    cdef str name = NAMES.get(format, f"Arrow format {format!r}")
    if format[:2] == "ts" and format[2:3] in UNITS:
        name = f"timestamp[{UNITS[format[2]]}]"
    elif format[:2] == "w:":
        name = f"fixed_size_binary[{format[2:]}]"
    if schema.dictionary != NULL:
        return f"dictionary<{arrow_type_name(schema.dictionary)}, {name}>"
    if schema.n_children > 0 and schema.children != NULL and strncmp(schema.format, "+l", 2) == 0:
        return f"{name}<{arrow_type_name(schema.children[0])}>"
    return name


cdef str arrow_column_name(const ArrowSchema* schema):
    return "" if schema.name == NULL else schema.name.decode("utf-8", "replace")


cdef ArrowSchema* arrow_find_column(const ArrowSchema* schema, object name,
                                    int64_t* index) except NULL:
    cdef int64_t at
    cdef int64_t found = -1
    cdef list names = []
    if not isinstance(name, str):
        raise TypeError(
            f"a column is named by a str, not {type(name).__name__}: {errors.shown(name)}")
    for at in range(schema.n_children):
        names.append(arrow_column_name(schema.children[at]))
        if names[at] == name:
            if found >= 0:
                raise ValueError(f"there is more than one column {errors.shown(name)}")
            found = at
    if found < 0:
        raise ValueError(f"there is no column {errors.shown(name)}; there are "
                         f"{', '.join(map(repr, names))}")
    index[0] = found
    return schema.children[found]

/* SPDX-License-Identifier: BSD-3-Clause */
#include "image_type.h"

#include <vector>

namespace zc::migrate::hdf5 {

namespace {

/** A type of HDF5 that is not to be closed; none for complex numbers. */
hid_t simple_type(element type, side whose)
{
    const bool here = whose == side::memory;
    switch (type) {
    case element::byte:
        return here ? H5T_NATIVE_B8 : H5T_STD_B8LE;
    case element::i8:
        return here ? H5T_NATIVE_INT8 : H5T_STD_I8LE;
    case element::u8:
        return here ? H5T_NATIVE_UINT8 : H5T_STD_U8LE;
    case element::i16:
        return here ? H5T_NATIVE_INT16 : H5T_STD_I16LE;
    case element::u16:
        return here ? H5T_NATIVE_UINT16 : H5T_STD_U16LE;
    case element::i32:
        return here ? H5T_NATIVE_INT32 : H5T_STD_I32LE;
    case element::u32:
        return here ? H5T_NATIVE_UINT32 : H5T_STD_U32LE;
    case element::i64:
        return here ? H5T_NATIVE_INT64 : H5T_STD_I64LE;
    case element::u64:
        return here ? H5T_NATIVE_UINT64 : H5T_STD_U64LE;
    case element::f32:
        return here ? H5T_NATIVE_FLOAT : H5T_IEEE_F32LE;
    case element::f64:
        return here ? H5T_NATIVE_DOUBLE : H5T_IEEE_F64LE;
    case element::longdouble:
        return H5T_NATIVE_LDOUBLE;
    case element::c64:
    case element::c128:
    case element::longcomplex:
        break;
    }
    return H5I_INVALID_HID;
}

/** Of what the parts of a complex number are. */
element part_of(element type)
{
    return type == element::c64    ? element::f32
           : type == element::c128 ? element::f64
                                   : element::longdouble;
}

handle type_of(element type, side whose)
{
    const std::string what = std::string("make a type for ") + name_of(type);
    if (const hid_t simple = simple_type(type, whose); simple >= 0)
        return {H5Tcopy(simple), H5Tclose, what};
    /* As h5py and others have them. */
    handle pair(H5Tcreate(H5T_COMPOUND, size_of(type)), H5Tclose, what);
    const hid_t part = simple_type(part_of(type), whose);
    ensure(H5Tinsert(pair, "r", 0, part), what);
    ensure(H5Tinsert(pair, "i", size_of(type) / 2, part), what);
    return pair;
}

} // namespace

handle type_of(const array &a, side whose)
{
    if (!a.shape)
        return type_of(a.type, whose);
    const std::vector<layout::member> &unit = a.shape->unit();
    if (unit.size() == 1)
        return type_of(unit[0].type, whose);
    const std::string what = "make a type for " + a.type_name();
    handle whole(H5Tcreate(H5T_COMPOUND, a.unit_bytes()), H5Tclose, what);
    std::size_t offset = 0;
    for (const layout::member &one : unit) {
        const std::string name = "m" + std::to_string(&one - unit.data());
        const handle basic = type_of(one.type, whose);
        const hsize_t count = one.count;
        if (count == 1) {
            ensure(H5Tinsert(whole, name.c_str(), offset, basic), what);
        } else {
            const handle list(H5Tarray_create2(basic, 1, &count), H5Tclose, what);
            ensure(H5Tinsert(whole, name.c_str(), offset, list), what);
        }
        offset += count * size_of(one.type);
    }
    return whole;
}

std::string described(hid_t stored, std::uint64_t units)
{
    const std::string times = units == 1 ? "" : "[" + std::to_string(units) + "]";
    for (int kind = 0; kind <= static_cast<int>(kLastElement); kind++)
        if (H5Tequal(stored, type_of(static_cast<element>(kind), side::file)) > 0)
            return name_of(static_cast<element>(kind)) + times;
    if (H5Tget_class(stored) != H5T_COMPOUND)
        return "of a type that libzcm does not write";
    std::string text;
    for (int i = 0; i < H5Tget_nmembers(stored); i++) {
        handle member(H5Tget_member_type(stored, static_cast<unsigned>(i)), H5Tclose,
                      "look at a type");
        std::uint64_t count = 1;
        if (H5Tget_class(member) == H5T_ARRAY) {
            hsize_t length = 0;
            H5Tget_array_dims2(member, &length);
            count = length;
            handle basic(H5Tget_super(member), H5Tclose, "look at a type");
            text += (i ? "," : "{") + described(basic, count);
        } else {
            text += (i ? "," : "{") + described(member, 1);
        }
    }
    return text + "}" + times;
}

} // namespace zc::migrate::hdf5

/* SPDX-License-Identifier: BSD-3-Clause */
#include "datatype.h"

#include <utility>
#include <vector>

#include "error.h"

namespace zc::migrate {

namespace {

using stretch = layout::part;
using stretches = std::vector<stretch>;

element integer(std::size_t size, bool is_signed)
{
    switch (size) {
    case 1:
        return is_signed ? element::i8 : element::u8;
    case 2:
        return is_signed ? element::i16 : element::u16;
    case 4:
        return is_signed ? element::i32 : element::u32;
    default:
        return is_signed ? element::i64 : element::u64;
    }
}

template <typename T>
element integer_like()
{
    return integer(sizeof(T), static_cast<T>(-1) < static_cast<T>(0));
}

struct named {
    MPI_Datatype type;
    element kind;
};

std::optional<element> of_c(MPI_Datatype type)
{
    const named known[] = {
        {MPI_BYTE, element::byte},
        {MPI_DOUBLE, element::f64},
        {MPI_FLOAT, element::f32},
        {MPI_INT, integer_like<int>()},
        {MPI_LONG, integer_like<long>()},
        {MPI_LONG_LONG, element::i64},
        {MPI_SHORT, integer_like<short>()},
        {MPI_CHAR, element::i8},
        {MPI_SIGNED_CHAR, element::i8},
        {MPI_UNSIGNED_CHAR, element::u8},
        {MPI_UNSIGNED_SHORT, integer_like<unsigned short>()},
        {MPI_UNSIGNED, integer_like<unsigned>()},
        {MPI_UNSIGNED_LONG, integer_like<unsigned long>()},
        {MPI_UNSIGNED_LONG_LONG, element::u64},
        {MPI_INT8_T, element::i8},
        {MPI_INT16_T, element::i16},
        {MPI_INT32_T, element::i32},
        {MPI_INT64_T, element::i64},
        {MPI_UINT8_T, element::u8},
        {MPI_UINT16_T, element::u16},
        {MPI_UINT32_T, element::u32},
        {MPI_UINT64_T, element::u64},
        {MPI_C_BOOL, element::u8},
        {MPI_WCHAR, integer_like<wchar_t>()},
        {MPI_AINT, integer_like<MPI_Aint>()},
        {MPI_OFFSET, integer_like<MPI_Offset>()},
        {MPI_COUNT, integer_like<MPI_Count>()},
        {MPI_LONG_DOUBLE, element::longdouble},
        {MPI_C_FLOAT_COMPLEX, element::c64},
        {MPI_C_DOUBLE_COMPLEX, element::c128},
        {MPI_C_LONG_DOUBLE_COMPLEX, element::longcomplex},
        {MPI_CXX_BOOL, element::u8},
        {MPI_CXX_FLOAT_COMPLEX, element::c64},
        {MPI_CXX_DOUBLE_COMPLEX, element::c128},
        {MPI_CXX_LONG_DOUBLE_COMPLEX, element::longcomplex},
    };
    for (const named &one : known)
        if (one.type == type)
            return one.kind;
    return std::nullopt;
}

/** What kind of number a type of Fortran is; how long it is depends on the compiler and its
 *  options, and MPI knows. */
std::optional<element> of_fortran(MPI_Datatype type)
{
    enum class family { integer, real, complex };
    const std::pair<MPI_Datatype, family> known[] = {
        {MPI_INTEGER, family::integer},
        {MPI_LOGICAL, family::integer},
        {MPI_CHARACTER, family::integer},
        {MPI_INTEGER1, family::integer},
        {MPI_INTEGER2, family::integer},
        {MPI_INTEGER4, family::integer},
        {MPI_INTEGER8, family::integer},
        {MPI_REAL, family::real},
        {MPI_DOUBLE_PRECISION, family::real},
        {MPI_REAL4, family::real},
        {MPI_REAL8, family::real},
        {MPI_COMPLEX, family::complex},
        {MPI_DOUBLE_COMPLEX, family::complex},
        {MPI_COMPLEX8, family::complex},
        {MPI_COMPLEX16, family::complex},
    };
    for (const auto &[one, kind] : known) {
        int size = 0;
        if (one != type || PMPI_Type_size(type, &size) != MPI_SUCCESS)
            continue;
        if (kind == family::integer && (size == 1 || size == 2 || size == 4 || size == 8))
            return integer(static_cast<std::size_t>(size), true);
        if (kind == family::real && (size == 4 || size == 8))
            return size == 4 ? element::f32 : element::f64;
        if (kind == family::complex && (size == 8 || size == 16))
            return size == 8 ? element::c64 : element::c128;
    }
    return std::nullopt;
}

/** selected_real_kind() and the like. */
std::optional<element> of_fortran_90(int combiner, MPI_Datatype type)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    if (combiner == MPI_COMBINER_F90_INTEGER && size <= 8)
        return integer(static_cast<std::size_t>(size), true);
    if (combiner == MPI_COMBINER_F90_REAL && (size == 4 || size == 8))
        return size == 4 ? element::f32 : element::f64;
    if (combiner == MPI_COMBINER_F90_COMPLEX && (size == 8 || size == 16))
        return size == 8 ? element::c64 : element::c128;
    return std::nullopt;
}

/** What a derived type was made of. */
class recipe {
  public:
    explicit recipe(MPI_Datatype type)
    {
        int n_integers = 0, n_addresses = 0, n_types = 0;
        PMPI_Type_get_envelope(type, &n_integers, &n_addresses, &n_types, &combiner);
        if (combiner == MPI_COMBINER_NAMED)
            return;
        integers.resize(static_cast<std::size_t>(n_integers));
        addresses.resize(static_cast<std::size_t>(n_addresses));
        types.resize(static_cast<std::size_t>(n_types));
        PMPI_Type_get_contents(type, n_integers, n_addresses, n_types, integers.data(),
                               addresses.data(), types.data());
    }
    ~recipe()
    {
        for (MPI_Datatype &one : types) {
            int n[3], of_it;
            PMPI_Type_get_envelope(one, &n[0], &n[1], &n[2], &of_it);
            if (of_it != MPI_COMBINER_NAMED && of_it != MPI_COMBINER_F90_REAL &&
                of_it != MPI_COMBINER_F90_COMPLEX && of_it != MPI_COMBINER_F90_INTEGER)
                PMPI_Type_free(&one);
        }
    }
    recipe(const recipe &) = delete;
    recipe &operator=(const recipe &) = delete;

    int combiner = MPI_COMBINER_NAMED;
    std::vector<int> integers;
    std::vector<MPI_Aint> addresses;
    std::vector<MPI_Datatype> types;
};

std::int64_t extent_of(MPI_Datatype type)
{
    MPI_Aint lower = 0, extent = 0;
    PMPI_Type_get_extent(type, &lower, &extent);
    return extent;
}

/** A type map as it grows. */
class type_map {
  public:
    /** Of one element at @offset. */
    void add(MPI_Datatype type, std::int64_t offset);
    stretches take() { return std::move(stretches_); }

  private:
    void append(const stretch &one);
    void repeat(const stretches &what, std::int64_t offset, std::int64_t stride,
                std::int64_t count);
    void blocks(const recipe &of, std::int64_t offset);
    void subarray(const recipe &of, std::int64_t offset);

    stretches stretches_;
};

stretches map_of(MPI_Datatype type)
{
    type_map inner;
    inner.add(type, 0);
    return inner.take();
}

void type_map::append(const stretch &one)
{
    if (one.count == 0)
        return;
    if (!stretches_.empty()) {
        stretch &last = stretches_.back();
        if (last.type == one.type &&
            last.offset + static_cast<std::int64_t>(last.count * size_of(last.type)) ==
                one.offset) {
            last.count += one.count;
            return;
        }
    }
    if (stretches_.size() >= layout::kMostParts)
        throw error(ENOTSUP, "a type of more than " + std::to_string(layout::kMostParts) +
                                 " pieces of memory");
    stretches_.push_back(one);
}

/** @what, @count times. */
void type_map::repeat(const stretches &what, std::int64_t offset, std::int64_t stride,
                      std::int64_t count)
{
    if (what.size() == 1 && count > 0 &&
        stride == static_cast<std::int64_t>(what[0].count * size_of(what[0].type))) {
        append({offset + what[0].offset, what[0].type,
                what[0].count * static_cast<std::uint64_t>(count)});
        return;
    }
    if (what.empty())
        return;
    for (std::int64_t i = 0; i < count; i++)
        for (const stretch &one : what)
            append({offset + i * stride + one.offset, one.type, one.count});
}

/** Vectors and indexed types: blocks of one type. */
void type_map::blocks(const recipe &of, std::int64_t offset)
{
    const stretches inner = map_of(of.types[0]);
    const std::int64_t extent = extent_of(of.types[0]);
    const std::vector<int> &n = of.integers;
    const auto count = static_cast<std::size_t>(n[0]);
    for (std::size_t i = 0; i < count; i++) {
        const auto step = static_cast<std::int64_t>(i);
        switch (of.combiner) {
        case MPI_COMBINER_VECTOR:
            repeat(inner, offset + step * n[2] * extent, extent, n[1]);
            break;
        case MPI_COMBINER_HVECTOR:
            repeat(inner, offset + step * of.addresses[0], extent, n[1]);
            break;
        case MPI_COMBINER_INDEXED:
            repeat(inner, offset + n[1 + count + i] * extent, extent, n[1 + i]);
            break;
        case MPI_COMBINER_HINDEXED:
            repeat(inner, offset + of.addresses[i], extent, n[1 + i]);
            break;
        case MPI_COMBINER_INDEXED_BLOCK:
            repeat(inner, offset + n[2 + i] * extent, extent, n[1]);
            break;
        default: /* MPI_COMBINER_HINDEXED_BLOCK */
            repeat(inner, offset + of.addresses[i], extent, n[1]);
            break;
        }
    }
}

void type_map::subarray(const recipe &of, std::int64_t offset)
{
    const auto dims = static_cast<std::size_t>(of.integers[0]);
    const int *sizes = of.integers.data() + 1, *subsizes = sizes + dims, *starts = subsizes + dims;
    const bool c_order = starts[dims] == MPI_ORDER_C;
    const std::int64_t extent = extent_of(of.types[0]);
    /* From the dimension that changes fastest on: the stretches of a row, of rows, and so on. */
    stretches inner = map_of(of.types[0]);
    std::int64_t stride = extent, start = 0;
    for (std::size_t i = 0; i < dims; i++) {
        const std::size_t d = c_order ? dims - 1 - i : i;
        type_map outer;
        outer.repeat(inner, 0, stride, subsizes[d]);
        inner = outer.take();
        start += starts[d] * stride;
        stride *= sizes[d];
    }
    repeat(inner, offset + start, 0, 1);
}

void type_map::add(MPI_Datatype type, std::int64_t offset)
{
    if (const auto basic = predefined(type)) {
        append({offset, *basic, 1});
        return;
    }
    const recipe of(type);
    switch (of.combiner) {
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
        if (const auto basic = of_fortran_90(of.combiner, type))
            return append({offset, *basic, 1});
        break;
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return add(of.types[0], offset);
    case MPI_COMBINER_CONTIGUOUS:
        return repeat(map_of(of.types[0]), offset, extent_of(of.types[0]), of.integers[0]);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        return blocks(of, offset);
    case MPI_COMBINER_STRUCT:
        for (std::size_t i = 0; i < of.types.size(); i++)
            repeat(map_of(of.types[i]), offset + of.addresses[i], extent_of(of.types[i]),
                   of.integers[1 + i]);
        return;
    case MPI_COMBINER_SUBARRAY:
        return subarray(of, offset);
    case MPI_COMBINER_DARRAY:
        throw error(ENOTSUP, "a distributed array (MPI_Type_create_darray)");
    default:
        break;
    }
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    PMPI_Type_get_name(type, name, &length);
    throw error(ENOTSUP, std::string("elements of ") +
                             (length > 0 ? name : "a type that libzcm does not know"));
}

} // namespace

std::optional<element> predefined(MPI_Datatype type)
{
    if (type == MPI_DATATYPE_NULL) /* what types are that the library lacks */
        return std::nullopt;
    const auto found = of_c(type);
    return found ? found : of_fortran(type);
}

void set_type(array &target, MPI_Datatype type)
{
    if (type == MPI_DATATYPE_NULL)
        throw error(EINVAL, "'" + target.name + "' has no type: MPI_DATATYPE_NULL");
    if (const auto basic = predefined(type)) {
        target.type = *basic;
        return;
    }
    try {
        target.shape = std::make_shared<layout>(map_of(type), extent_of(type));
    } catch (const error &problem) {
        throw error(problem.code(),
                    "type of '" + target.name + "' cannot be saved: " + problem.what());
    }
}

} // namespace zc::migrate

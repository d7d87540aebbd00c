/* SPDX-License-Identifier: BSD-3-Clause */
#include "image.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "crc32c.h"
#include "error.h"
#include "image_type.h"

namespace zc::migrate {

using namespace hdf5;

namespace {

constexpr std::uint64_t kChunkBytes = 128 << 10;
constexpr std::uint64_t kSegmentBytes = 1 << 20;
constexpr std::size_t kGrowth = kChunkBytes;
constexpr const char *kFormat = "zcm 2";

/** Selects elements of the file's @space; the result is the space of them in memory. */
handle selected(const handle &space, hsize_t offset, hsize_t length, const std::string &what)
{
    ensure(H5Sselect_hyperslab(space, H5S_SELECT_SET, &offset, nullptr, &length, nullptr), what);
    return {H5Screate_simple(1, &length, nullptr), H5Sclose, what};
}

std::uint64_t chunk_units(const array &a)
{
    return std::max<std::uint64_t>(1, std::min(a.units(), kChunkBytes / a.unit_bytes()));
}

/* Of all chunks of @a, which have the same size, the last one too. */
std::uint64_t stored_bytes(const array &a)
{
    const std::uint64_t chunk = chunk_units(a);
    return (a.units() + chunk - 1) / chunk * chunk * a.unit_bytes();
}

bool is_chunked(const array &a)
{
    return a.bytes() > kChunkBytes && a.units() > 1;
}

void put_attribute(hid_t where, const char *name, hid_t stored, hid_t given, const void *value)
{
    handle space(H5Screate(H5S_SCALAR), H5Sclose, "make a dataspace");
    handle attribute(H5Acreate2(where, name, stored, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                     std::string("make attribute ") + name);
    ensure(H5Awrite(attribute, given, value), std::string("write attribute ") + name);
}

void get_attribute(hid_t where, const char *name, hid_t wanted, void *value)
{
    handle attribute(H5Aopen(where, name, H5P_DEFAULT), H5Aclose,
                     std::string("find attribute ") + name);
    ensure(H5Aread(attribute, wanted, value), std::string("read attribute ") + name);
}

/** Units in an element of a data set: 1 unless it is of a derived type. */
std::uint64_t units_of(hid_t data)
{
    std::uint64_t units = 1;
    if (H5Aexists(data, "units") > 0)
        get_attribute(data, "units", H5T_NATIVE_UINT64, &units);
    if (units == 0)
        throw error(EBADMSG, "HDF5 image with elements of nothing");
    return units;
}

/* ---- callbacks of the core driver: its buffer is ours, and is never copied ---- */

void *same_udata(void *udata)
{
    return udata;
}

herr_t keep_udata(void *)
{
    return 0;
}

herr_t keep_image(void *, H5FD_file_image_op_t, void *)
{
    return 0;
}

void *writer_buffer(std::size_t size, void *udata)
{
    auto *memory = static_cast<image_memory *>(udata);
    return size <= memory->capacity() ? memory->data() : nullptr;
}

void *writer_malloc(std::size_t size, H5FD_file_image_op_t, void *udata)
{
    return writer_buffer(size, udata);
}

void *writer_realloc(void *, std::size_t size, H5FD_file_image_op_t, void *udata)
{
    return writer_buffer(size, udata);
}

void *no_memcpy(void *target, const void *, std::size_t, H5FD_file_image_op_t, void *)
{
    return target;
}

void *reader_malloc(std::size_t, H5FD_file_image_op_t, void *udata)
{
    return udata;
}

void *reader_realloc(void *, std::size_t, H5FD_file_image_op_t, void *)
{
    return nullptr; /* it is only read */
}

/* Two files open under one name would be taken for the same. */
std::string unique_name()
{
    static std::atomic<unsigned> next{0};
    return "/dev/null/zcm-" + std::to_string(next++);
}

hid_t set_core(const handle &access, H5FD_file_image_callbacks_t callbacks)
{
    callbacks.image_free = keep_image;
    callbacks.udata_copy = same_udata;
    callbacks.udata_free = keep_udata;
    ensure(H5Pset_fapl_core(access, kGrowth, false), "choose its core driver");
    ensure(H5Pset_file_image_callbacks(access, &callbacks), "set image callbacks");
    return access;
}

hid_t create_file(image_memory &memory)
{
    handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make a property list");
    H5FD_file_image_callbacks_t callbacks{};
    callbacks.image_malloc = writer_malloc;
    callbacks.image_memcpy = no_memcpy;
    callbacks.image_realloc = writer_realloc;
    callbacks.udata = &memory;
    set_core(access, callbacks);
    return H5Fcreate(unique_name().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
}

hid_t create_file(const std::string &path)
{
    handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make a property list");
#if H5_VERSION_GE(1, 10, 7)
    /* Its locks are not needed, and some file systems have none. */
    H5Pset_file_locking(access, false, true);
#endif
    return H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
}

/**
 * What HDF5 still writes to @file goes nowhere. Where it cannot write because the disk is full it
 * cannot close a file either, and what is left of it then crashes at the end of the process.
 */
void divert(hid_t file)
{
    void *handle = nullptr;
    if (H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0)
        return;
    const int nowhere = memfd_create("zcm", MFD_CLOEXEC);
    if (nowhere < 0)
        return;
    dup3(nowhere, *static_cast<int *>(handle), O_CLOEXEC);
    close(nowhere);
}

hid_t open_image(std::span<const std::byte> image)
{
    handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make a property list");
    void *bytes = const_cast<std::byte *>(image.data()); /* never written: opened for reading */
    H5FD_file_image_callbacks_t callbacks{};
    callbacks.image_malloc = reader_malloc;
    callbacks.image_memcpy = no_memcpy;
    callbacks.image_realloc = reader_realloc;
    callbacks.udata = bytes;
    set_core(access, callbacks);
    ensure(H5Pset_file_image(access, bytes, image.size()), "take an image");
    return H5Fopen(unique_name().c_str(), H5F_ACC_RDONLY, access);
}

/* Chunks larger than its cache go straight between the image and the user's memory. */
hid_t uncached()
{
    hid_t list = H5Pcreate(H5P_DATASET_ACCESS);
    if (list >= 0)
        H5Pset_chunk_cache(list, 1, 0, 1.0);
    return list;
}

} // namespace

/* ---- memory ---- */

image_memory::image_memory(image_memory &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0))
{
}

image_memory &image_memory::operator=(image_memory &&other) noexcept
{
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
}

image_memory::~image_memory()
{
    if (data_)
        munmap(data_, capacity_);
}

void image_memory::give_away() noexcept
{
    data_ = nullptr;
    capacity_ = 0;
}

void image_memory::reserve(std::size_t bytes)
{
    if (bytes <= capacity_)
        return;
    void *fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED)
        throw_errno(errno, "no address space for an image of " + std::to_string(bytes) + " bytes");
    if (data_)
        munmap(data_, capacity_);
    data_ = static_cast<std::byte *>(fresh);
    capacity_ = bytes;
}

namespace {

/* Superblock, root group and the driver's rounding. */
constexpr std::size_t kRoomForFile = 1 << 20;

std::size_t room_for(std::uint64_t bytes)
{
    return bytes + kChunkBytes + (bytes / kChunkBytes + 1) * 256 + (64 << 10);
}

} // namespace

std::uint64_t segment_units(const array &a)
{
    const std::uint64_t chunk = chunk_units(a);
    return std::max<std::uint64_t>(1, kSegmentBytes / a.unit_bytes() / chunk) * chunk;
}

std::size_t segment_bound(const array &a)
{
    return kRoomForFile + room_for(std::min(a.units(), segment_units(a)) * a.unit_bytes());
}

std::size_t image_bound(std::span<const array> arrays)
{
    std::size_t bound = kRoomForFile;
    for (const array &a : arrays)
        bound += room_for(a.bytes());
    return bound;
}

/* ---- writing ---- */

struct image_writer::file {
    hid_t id = H5I_INVALID_HID;
    const std::byte *data = nullptr;

    ~file()
    {
        if (id < 0)
            return; /* it may be that HDF5 could not be loaded: it cannot be asked to be quiet */
        quiet silence;
        if (!data)
            divert(id); /* it is given up */
        H5Fclose(id);
    }
};

image_writer::image_writer(image_memory &memory, const image_header &header, checksums checked)
    : file_(std::make_unique<file>()), checked_(checked)
{
    quiet silence;
    file_->data = memory.data();
    file_->id = create_file(memory);
    if (file_->id < 0)
        throw error(ENOMEM, "HDF5 cannot make an image in memory");
    begin(header);
}

image_writer::image_writer(const std::string &path, const image_header &header)
    : file_(std::make_unique<file>()), checked_(checksums::arrays)
{
    quiet silence;
    errno = 0;
    file_->id = create_file(path);
    if (file_->id < 0)
        throw_errno(errno ? errno : EIO, path);
    begin(header);
}

image_writer::~image_writer() = default;

void image_writer::begin(const image_header &header)
{
    handle text(H5Tcopy(H5T_C_S1), H5Tclose, "copy a type");
    ensure(H5Tset_size(text, std::strlen(kFormat) + 1), "size a type");
    put_attribute(file_->id, "format", text, text, kFormat);
    put_attribute(file_->id, "rank", H5T_STD_I32LE, H5T_NATIVE_INT32, &header.rank);
    put_attribute(file_->id, "ranks", H5T_STD_I32LE, H5T_NATIVE_INT32, &header.ranks);
    put_attribute(file_->id, "safe_point", H5T_STD_I64LE, H5T_NATIVE_INT64, &header.safe_point);
    put_attribute(file_->id, "job", H5T_STD_U64LE, H5T_NATIVE_UINT64, &header.job);
}

struct image_writer::target {
    const handle &data, &space, &type;
    std::string what;
    std::uint64_t chunk, unit_bytes; /* units, bytes */
    /* H5Dwrite() fills and copies a chunk that is not there yet, then copies it again: whole
     * chunks that need no conversion go there at once. */
    bool raw;
};

void image_writer::write(const array &source, std::uint64_t first, std::uint64_t count,
                         const std::function<void(std::uint64_t)> &written)
{
    quiet silence;
    const hsize_t extent = source.units(), chunk = chunk_units(source);
    const std::string what = "write '" + source.name + "'";
    const handle in_file = type_of(source, side::file), type = type_of(source, side::memory);
    handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose, what);
    handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, what);
    if (is_chunked(source))
        ensure(H5Pset_chunk(creation, 1, &chunk), what);
    handle access(uncached(), H5Pclose, what);
    handle data(
        H5Dcreate2(file_->id, source.name.c_str(), in_file, space, H5P_DEFAULT, creation, access),
        H5Dclose, what);
    /* While the data set is open. */
    const undo give_up([this] {
        if (!file_->data)
            divert(file_->id);
    });
    const target to{data,
                    space,
                    type,
                    what,
                    chunk,
                    source.unit_bytes(),
                    is_chunked(source) && H5Tequal(in_file, type) > 0};

    std::uint32_t crc = 0;
    const std::uint64_t size = source.unit_bytes(), end = first + count;
    if (source.is_dense()) {
        write_units(to, {source.address + first * size, count * size}, first, written);
        if (checked_ == checksums::arrays)
            crc = zc_crc32c(0, source.address + first * size, count * size);
    } else {
        std::vector<std::byte> packed;
        for (std::uint64_t at = first, some; at < end; at += some) {
            some = std::min(segment_units(source), end - at);
            packed.resize(some * size);
            source.pack(at, packed);
            write_units(to, packed, at, written);
            crc = zc_crc32c(crc, packed.data(), packed.size());
        }
    }
    if (source.shape) {
        const std::uint64_t units = source.shape->units();
        put_attribute(data, "units", H5T_STD_U64LE, H5T_NATIVE_UINT64, &units);
    }
    if (checked_ == checksums::arrays)
        put_attribute(data, "crc32c", H5T_STD_U32LE, H5T_NATIVE_UINT32, &crc);
}

/** @units: without gaps, from unit @first on, which is the first of a chunk. */
void image_writer::write_units(const target &to, std::span<const std::byte> units,
                               std::uint64_t first,
                               const std::function<void(std::uint64_t)> &written)
{
    const std::uint64_t size = to.unit_bytes, chunk = to.chunk;
    const std::uint64_t end = first + units.size() / size;
    const auto from = [&](std::uint64_t at) { return units.data() + (at - first) * size; };
    const auto tell = [&](std::uint64_t count) {
        if (written)
            written(count * size);
    };
    /* Runs of chunks that are not zero. */
    for (std::uint64_t at = first; at < end;) {
        std::uint64_t run = at;
        while (run < end) {
            const std::uint64_t some = std::min<std::uint64_t>(chunk, end - run);
            if (is_zero({from(run), some * size}))
                break;
            run += some;
        }
        if (to.raw) {
            const std::uint64_t whole = run - (run - at) % chunk;
            for (; at < whole; at += chunk) {
                const hsize_t offset = at;
                ensure(H5Dwrite_chunk(to.data, H5P_DEFAULT, 0, &offset, chunk * size, from(at)),
                       to.what);
                tell(chunk);
            }
        }
        if (run > at) {
            const handle memory = selected(to.space, at, run - at, to.what);
            ensure(H5Dwrite(to.data, to.type, memory, to.space, H5P_DEFAULT, from(at)), to.what);
            tell(run - at);
        }
        for (at = run; at < end;) {
            const std::uint64_t some = std::min<std::uint64_t>(chunk, end - at);
            if (at != run && !is_zero({from(at), some * size}))
                break;
            zero_bytes_ += some * size;
            at += some;
        }
    }
}

std::span<const std::byte> image_writer::finish()
{
    quiet silence;
    ensure(H5Fflush(file_->id, H5F_SCOPE_GLOBAL), "finish an image");
    const ssize_t bytes = H5Fget_file_image(file_->id, nullptr, 0);
    if (bytes < 0)
        throw error(EBADMSG, "HDF5 cannot tell the size of an image");
    const herr_t closed = H5Fclose(std::exchange(file_->id, H5I_INVALID_HID));
    ensure(closed, "close an image");
    return {file_->data, static_cast<std::size_t>(bytes)};
}

void image_writer::finish_file()
{
    quiet silence;
    ensure(H5Fflush(file_->id, H5F_SCOPE_GLOBAL), "finish an image");
    ensure(H5Fclose(std::exchange(file_->id, H5I_INVALID_HID)), "close an image");
}

/* ---- reading ---- */

struct image_reader::file {
    hid_t id = H5I_INVALID_HID;

    ~file()
    {
        if (id < 0)
            return;
        quiet silence;
        H5Fclose(id);
    }
};

image_reader::image_reader(std::span<const std::byte> image, checksums checked)
    : file_(std::make_unique<file>()), checked_(checked)
{
    quiet silence;
    file_->id = open_image(image);
    if (file_->id < 0)
        throw error(EBADMSG, "not an HDF5 image, or a damaged one");
}

image_reader::image_reader(const std::string &path) : file_(std::make_unique<file>())
{
    quiet silence;
    file_->id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file_->id < 0)
        throw error(EBADMSG, "not a readable HDF5 file: " + path);
}

image_reader::~image_reader() = default;

image_header image_reader::header() const
{
    quiet silence;
    char format[32] = "";
    handle text(H5Tcopy(H5T_C_S1), H5Tclose, "copy a type");
    ensure(H5Tset_size(text, sizeof format), "size a type");
    get_attribute(file_->id, "format", text, format);
    if (std::strcmp(format, kFormat) != 0)
        throw error(EBADMSG, std::string("image of an unknown format '") + format + "'");
    image_header header;
    get_attribute(file_->id, "rank", H5T_NATIVE_INT32, &header.rank);
    get_attribute(file_->id, "ranks", H5T_NATIVE_INT32, &header.ranks);
    get_attribute(file_->id, "safe_point", H5T_NATIVE_INT64, &header.safe_point);
    get_attribute(file_->id, "job", H5T_NATIVE_UINT64, &header.job);
    return header;
}

std::vector<std::string> image_reader::names() const
{
    quiet silence;
    H5G_info_t group;
    ensure(H5Gget_info(file_->id, &group), "list an image");
    std::vector<std::string> names;
    for (hsize_t i = 0; i < group.nlinks; i++) {
        char name[256];
        if (H5Lget_name_by_idx(file_->id, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name,
                               H5P_DEFAULT) < 0)
            throw error(EBADMSG, "HDF5 cannot list an image");
        names.emplace_back(name);
    }
    return names;
}

std::optional<std::uint64_t> image_reader::count(const std::string &name) const
{
    quiet silence;
    const std::string what = "look at '" + name + "'";
    if (H5Lexists(file_->id, name.c_str(), H5P_DEFAULT) <= 0)
        return std::nullopt;
    handle data(H5Dopen2(file_->id, name.c_str(), H5P_DEFAULT), H5Dclose, what);
    handle space(H5Dget_space(data), H5Sclose, what);
    const hssize_t saved = H5Sget_simple_extent_npoints(space);
    if (saved < 0)
        throw error(EBADMSG, "HDF5 cannot " + what);
    return static_cast<std::uint64_t>(saved) / units_of(data);
}

struct image_reader::source {
    const handle &data, &space, &type;
    std::string what;
    bool chunked;
    std::uint64_t chunk, unit_bytes; /* units, bytes */
    /* Nothing is left out: then no chunk has to be looked for, which HDF5 does one after the other.
     */
    bool is_whole;

    bool has(hsize_t at) const
    {
        if (is_whole)
            return true;
        if (!chunked)
            return H5Dget_storage_size(data) > 0;
        unsigned mask = 0;
        haddr_t address = HADDR_UNDEF;
        hsize_t bytes = 0;
        ensure(H5Dget_chunk_info_by_coord(data, &at, &mask, &address, &bytes), what);
        return address != HADDR_UNDEF && bytes > 0;
    }
};

void image_reader::read(const array &target, std::uint64_t first, std::uint64_t count) const
{
    quiet silence;
    const std::string what = "read '" + target.name + "'";
    if (H5Lexists(file_->id, target.name.c_str(), H5P_DEFAULT) <= 0)
        throw error(ENOENT, "nothing saved as '" + target.name + "'");
    handle access(uncached(), H5Pclose, what);
    handle data(H5Dopen2(file_->id, target.name.c_str(), access), H5Dclose, what);
    handle space(H5Dget_space(data), H5Sclose, what);
    handle stored(H5Dget_type(data), H5Tclose, what);
    const hssize_t saved = H5Sget_simple_extent_npoints(space);
    const std::uint64_t units = units_of(data);
    if (H5Tequal(stored, type_of(target, side::file)) <= 0 ||
        units != (target.shape ? target.shape->units() : 1))
        throw error(EBADMSG, "type of '" + target.name + "' is not " + target.type_name() +
                                 " as saved: that is " + described(stored, units));
    if (saved < 0 || static_cast<std::uint64_t>(saved) != target.units())
        throw error(EBADMSG, "'" + target.name + "' has " + std::to_string(target.count) +
                                 " elements here, " +
                                 std::to_string(static_cast<std::uint64_t>(saved) / units) +
                                 " were saved");
    handle creation(H5Dget_create_plist(data), H5Pclose, what);
    const bool chunked = H5Pget_layout(creation) == H5D_CHUNKED;
    const handle type = type_of(target, side::memory);
    const source from{data,
                      space,
                      type,
                      what,
                      chunked,
                      chunked ? chunk_units(target) : target.units(),
                      target.unit_bytes(),
                      chunked && H5Dget_storage_size(data) >= stored_bytes(target)};

    std::uint32_t crc = 0;
    const std::uint64_t size = target.unit_bytes(), end = first + count;
    if (target.is_dense()) {
        read_units(from, {target.address + first * size, count * size}, first);
        if (checked_ == checksums::arrays)
            crc = zc_crc32c(0, target.address + first * size, count * size);
    } else {
        std::vector<std::byte> packed;
        for (std::uint64_t at = first, some; at < end; at += some) {
            some = std::min(segment_units(target), end - at);
            packed.resize(some * size);
            read_units(from, packed, at);
            target.unpack(at, packed);
            crc = zc_crc32c(crc, packed.data(), packed.size());
        }
    }
    if (checked_ == checksums::none)
        return;
    std::uint32_t saved_crc = 0;
    get_attribute(data, "crc32c", H5T_NATIVE_UINT32, &saved_crc);
    if (crc != saved_crc)
        throw error(EBADMSG, "'" + target.name + "' is damaged: its checksum differs");
}

/** Fill @units, from unit @first on, which is the first of a chunk. */
void image_reader::read_units(const source &from, std::span<std::byte> units, std::uint64_t first)
{
    const std::uint64_t size = from.unit_bytes, chunk = from.chunk;
    const std::uint64_t end = first + units.size() / size;
    const auto to = [&](std::uint64_t at) { return units.data() + (at - first) * size; };
    for (std::uint64_t at = first; at < end;) {
        std::uint64_t run = at;
        while (run < end && from.has(run))
            run = std::min<std::uint64_t>(end, run + chunk);
        if (run > at) {
            const handle memory = selected(from.space, at, run - at, from.what);
            ensure(H5Dread(from.data, from.type, memory, from.space, H5P_DEFAULT, to(at)),
                   from.what);
        }
        for (at = run; at < end && (at == run || !from.has(at));) {
            const std::uint64_t some = std::min<std::uint64_t>(chunk, end - at);
            const std::span<std::byte> hole{to(at), some * size};
            /* Memory that is zero already is not touched where the image has nothing. */
            if (!is_zero(hole))
                std::memset(hole.data(), 0, hole.size());
            at += some;
        }
    }
}

} // namespace zc::migrate

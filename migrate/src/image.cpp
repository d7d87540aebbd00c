/* SPDX-License-Identifier: BSD-3-Clause */
#include "image.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <hdf5.h>
#include <sys/mman.h>
#include <utility>

#include "crc32c.h"
#include "error.h"

namespace zc::migrate {

namespace {

constexpr std::uint64_t kChunkBytes = 128 << 10;
constexpr std::uint64_t kSegmentBytes = 1 << 20;
constexpr std::size_t kGrowth = kChunkBytes;
constexpr const char *kFormat = "zcm 2";

/* HDF5 prints its error stack unless told otherwise; the program's setting comes back. */
class quiet {
  public:
    quiet()
    {
        H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
    ~quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

  private:
    H5E_auto2_t print_ = nullptr;
    void *data_ = nullptr;
};

/** One HDF5 identifier. */
class handle {
  public:
    handle(hid_t id, herr_t (*close)(hid_t), const std::string &what) : id_(id), close_(close)
    {
        if (id < 0)
            throw error(EBADMSG, "HDF5 cannot " + what);
    }
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    ~handle() { close_(id_); }
    operator hid_t() const noexcept { return id_; }

  private:
    hid_t id_;
    herr_t (*close_)(hid_t);
};

void ensure(herr_t status, const std::string &what)
{
    if (status < 0)
        throw error(EBADMSG, "HDF5 cannot " + what);
}

/** Selects elements of the file's @space; the result is the space of them in memory. */
handle selected(const handle &space, hsize_t offset, hsize_t length, const std::string &what)
{
    ensure(H5Sselect_hyperslab(space, H5S_SELECT_SET, &offset, nullptr, &length, nullptr), what);
    return {H5Screate_simple(1, &length, nullptr), H5Sclose, what};
}

hid_t memory_type(element type)
{
    switch (type) {
    case element::byte:
        return H5T_NATIVE_B8;
    case element::i8:
        return H5T_NATIVE_INT8;
    case element::u8:
        return H5T_NATIVE_UINT8;
    case element::i16:
        return H5T_NATIVE_INT16;
    case element::u16:
        return H5T_NATIVE_UINT16;
    case element::i32:
        return H5T_NATIVE_INT32;
    case element::u32:
        return H5T_NATIVE_UINT32;
    case element::i64:
        return H5T_NATIVE_INT64;
    case element::u64:
        return H5T_NATIVE_UINT64;
    case element::f32:
        return H5T_NATIVE_FLOAT;
    case element::f64:
        return H5T_NATIVE_DOUBLE;
    }
    return H5I_INVALID_HID;
}

/* The same everywhere, whatever the machine. */
hid_t file_type(element type)
{
    switch (type) {
    case element::byte:
        return H5T_STD_B8LE;
    case element::i8:
        return H5T_STD_I8LE;
    case element::u8:
        return H5T_STD_U8LE;
    case element::i16:
        return H5T_STD_I16LE;
    case element::u16:
        return H5T_STD_U16LE;
    case element::i32:
        return H5T_STD_I32LE;
    case element::u32:
        return H5T_STD_U32LE;
    case element::i64:
        return H5T_STD_I64LE;
    case element::u64:
        return H5T_STD_U64LE;
    case element::f32:
        return H5T_IEEE_F32LE;
    case element::f64:
        return H5T_IEEE_F64LE;
    }
    return H5I_INVALID_HID;
}

std::uint64_t chunk_elements(const array &a)
{
    return std::min<std::uint64_t>(a.count, kChunkBytes / size_of(a.type));
}

bool is_chunked(const array &a)
{
    return a.bytes() > kChunkBytes;
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

std::size_t image_bound(std::span<const array> arrays)
{
    std::size_t bound = 1 << 20; /* superblock, root group and the driver's rounding */
    for (const array &a : arrays)
        bound += a.bytes() + kChunkBytes + (a.bytes() / kChunkBytes + 1) * 256 + (16 << 10);
    return bound;
}

std::uint64_t segment_elements(const array &a)
{
    const std::uint64_t chunk = chunk_elements(a);
    return std::max<std::uint64_t>(1, kSegmentBytes / size_of(a.type) / chunk) * chunk;
}

/* ---- writing ---- */

struct image_writer::file {
    hid_t id = H5I_INVALID_HID;
    const std::byte *data = nullptr;
};

image_writer::image_writer(image_memory &memory, const image_header &header, checksums checked)
    : file_(new file), checked_(checked)
{
    quiet silence;
    try {
        file_->data = memory.data();
        file_->id = create_file(memory);
        if (file_->id < 0)
            throw error(ENOMEM, "HDF5 cannot make an image in memory");
        handle text(H5Tcopy(H5T_C_S1), H5Tclose, "copy a type");
        ensure(H5Tset_size(text, std::strlen(kFormat) + 1), "size a type");
        put_attribute(file_->id, "format", text, text, kFormat);
        put_attribute(file_->id, "rank", H5T_STD_I32LE, H5T_NATIVE_INT32, &header.rank);
        put_attribute(file_->id, "ranks", H5T_STD_I32LE, H5T_NATIVE_INT32, &header.ranks);
        put_attribute(file_->id, "safe_point", H5T_STD_I64LE, H5T_NATIVE_INT64, &header.safe_point);
        put_attribute(file_->id, "job", H5T_STD_U64LE, H5T_NATIVE_UINT64, &header.job);
    } catch (...) {
        if (file_->id >= 0)
            H5Fclose(file_->id);
        delete file_;
        throw;
    }
}

image_writer::~image_writer()
{
    quiet silence;
    if (file_->id >= 0)
        H5Fclose(file_->id);
    delete file_;
}

void image_writer::write(const array &source, std::uint64_t first, std::uint64_t count)
{
    quiet silence;
    const hsize_t extent = source.count;
    const hsize_t chunk = chunk_elements(source);
    const std::size_t size = size_of(source.type);
    const std::string what = "write '" + source.name + "'";

    handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose, what);
    handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, what);
    if (is_chunked(source))
        ensure(H5Pset_chunk(creation, 1, &chunk), what);
    handle access(uncached(), H5Pclose, what);
    handle data(H5Dcreate2(file_->id, source.name.c_str(), file_type(source.type), space,
                           H5P_DEFAULT, creation, access),
                H5Dclose, what);

    /* H5Dwrite() fills and copies a chunk that is not there yet, then copies it again: whole
     * chunks that need no conversion go there at once. */
    const bool raw =
        is_chunked(source) && H5Tequal(file_type(source.type), memory_type(source.type)) > 0;

    /* Runs of chunks that are not zero. */
    const std::uint64_t end = first + count;
    for (std::uint64_t at = first; at < end;) {
        std::uint64_t run = at;
        while (run < end) {
            const std::uint64_t some = std::min<std::uint64_t>(chunk, end - run);
            if (is_zero({source.address + run * size, some * size}))
                break;
            run += some;
        }
        if (raw) {
            const std::uint64_t whole = run - (run - at) % chunk;
            for (; at < whole; at += chunk) {
                const hsize_t offset = at;
                ensure(H5Dwrite_chunk(data, H5P_DEFAULT, 0, &offset, chunk * size,
                                      source.address + at * size),
                       what);
            }
        }
        if (run > at) {
            const handle memory = selected(space, at, run - at, what);
            ensure(H5Dwrite(data, memory_type(source.type), memory, space, H5P_DEFAULT,
                            source.address + at * size),
                   what);
        }
        for (at = run; at < end;) {
            const std::uint64_t some = std::min<std::uint64_t>(chunk, end - at);
            if (at != run && !is_zero({source.address + at * size, some * size}))
                break;
            zero_bytes_ += some * size;
            at += some;
        }
    }
    if (checked_ == checksums::none)
        return;
    const std::uint32_t crc = zc_crc32c(0, source.address + first * size, count * size);
    put_attribute(data, "crc32c", H5T_STD_U32LE, H5T_NATIVE_UINT32, &crc);
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

/* ---- reading ---- */

struct image_reader::file {
    hid_t id = H5I_INVALID_HID;
};

image_reader::image_reader(std::span<const std::byte> image, checksums checked)
    : file_(new file), checked_(checked)
{
    quiet silence;
    try {
        file_->id = open_image(image);
        if (file_->id < 0)
            throw error(EBADMSG, "not an HDF5 image, or a damaged one");
    } catch (...) {
        delete file_;
        throw;
    }
}

image_reader::image_reader(const std::string &path) : file_(new file)
{
    quiet silence;
    file_->id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file_->id < 0) {
        delete file_;
        throw error(EBADMSG, "not a readable HDF5 file: " + path);
    }
}

image_reader::~image_reader()
{
    quiet silence;
    H5Fclose(file_->id);
    delete file_;
}

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

void image_reader::read(const array &target, std::uint64_t first, std::uint64_t count) const
{
    quiet silence;
    const std::string what = "read '" + target.name + "'";
    const std::size_t size = size_of(target.type);
    if (H5Lexists(file_->id, target.name.c_str(), H5P_DEFAULT) <= 0)
        throw error(ENOENT, "nothing saved as '" + target.name + "'");
    handle access(uncached(), H5Pclose, what);
    handle data(H5Dopen2(file_->id, target.name.c_str(), access), H5Dclose, what);
    handle space(H5Dget_space(data), H5Sclose, what);
    handle stored(H5Dget_type(data), H5Tclose, what);
    if (H5Tequal(stored, file_type(target.type)) <= 0)
        throw error(EBADMSG,
                    "type of '" + target.name + "' is not " + name_of(target.type) + " as saved");
    const hssize_t saved = H5Sget_simple_extent_npoints(space);
    if (saved < 0 || static_cast<std::uint64_t>(saved) != target.count)
        throw error(EBADMSG, "'" + target.name + "' has " + std::to_string(target.count) +
                                 " elements here, " + std::to_string(saved) + " were saved");

    /* Memory that is zero already is not touched where the image has nothing. */
    handle creation(H5Dget_create_plist(data), H5Pclose, what);
    const bool chunked = H5Pget_layout(creation) == H5D_CHUNKED;
    const hsize_t chunk = chunked ? chunk_elements(target) : target.count;
    auto is_stored = [&](hsize_t at) {
        if (!chunked)
            return H5Dget_storage_size(data) > 0;
        unsigned mask = 0;
        haddr_t address = HADDR_UNDEF;
        hsize_t bytes = 0;
        ensure(H5Dget_chunk_info_by_coord(data, &at, &mask, &address, &bytes), what);
        return address != HADDR_UNDEF && bytes > 0;
    };
    const std::uint64_t end = first + count;
    for (std::uint64_t at = first; at < end;) {
        std::uint64_t run = at;
        while (run < end && is_stored(run))
            run = std::min<std::uint64_t>(end, run + chunk);
        if (run > at) {
            const handle memory = selected(space, at, run - at, what);
            ensure(H5Dread(data, memory_type(target.type), memory, space, H5P_DEFAULT,
                           target.address + at * size),
                   what);
        }
        for (at = run; at < end && (at == run || !is_stored(at));) {
            const std::uint64_t some = std::min<std::uint64_t>(chunk, end - at);
            const std::span<std::byte> hole{target.address + at * size, some * size};
            if (!is_zero(hole))
                std::memset(hole.data(), 0, hole.size());
            at += some;
        }
    }
    if (checked_ == checksums::none)
        return;
    std::uint32_t saved_crc = 0;
    get_attribute(data, "crc32c", H5T_NATIVE_UINT32, &saved_crc);
    if (zc_crc32c(0, target.address + first * size, count * size) != saved_crc)
        throw error(EBADMSG, "'" + target.name + "' is damaged: its checksum differs");
}

} // namespace zc::migrate

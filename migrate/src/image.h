/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array.h"

namespace zc::migrate {

/**
 * The state of a rank as an HDF5 file, in memory or on disk.
 *
 *     /                attributes: format, job, rank, ranks, safe_point
 *     /NAME            one-dimensional, chunked, portable type; attribute crc32c
 *                      of a derived type: its units (layout.h), and how many make an element
 *
 * Chunks that are all zero are not stored: they read as the fill value. An image
 * may hold a part of an array only (a *segment* on its way to a successor): the
 * other chunks are missing then, and so may be crc32c, if whoever carries it checks all its bytes.
 */
struct image_header {
    std::int32_t rank = 0;
    std::int32_t ranks = 0;
    std::int64_t safe_point = 0;
    std::uint64_t job = 0; /* its number */
};

/** Memory that images are built in; kept from one to the next. Never moves while in use. */
class image_memory {
  public:
    image_memory() = default;
    image_memory(image_memory &&other) noexcept;
    image_memory &operator=(image_memory &&other) noexcept;
    ~image_memory();

    /** Never unmap it: somebody else may use it as long as this process lives. */
    void give_away() noexcept;
    /** At least so much address space; touched pages only are memory. Content is lost. */
    void reserve(std::size_t bytes);
    std::byte *data() const noexcept { return data_; }
    std::size_t capacity() const noexcept { return capacity_; }

  private:
    std::byte *data_ = nullptr;
    std::size_t capacity_ = 0;
};

/** Room that an image of @arrays can need. */
std::size_t image_bound(std::span<const array> arrays);

/** Whether the arrays of an image have checksums. */
enum class checksums { none, arrays };

class image_writer {
  public:
    /** Builds in @memory, which must have room for the bound and outlive the writer. */
    image_writer(image_memory &memory, const image_header &header,
                 checksums checked = checksums::arrays);
    /** Builds in a file: replaced if it is there. */
    image_writer(const std::string &path, const image_header &header);
    ~image_writer();
    image_writer(const image_writer &) = delete;
    image_writer &operator=(const image_writer &) = delete;

    /** @written: called after each chunk, with its bytes. */
    void write(const array &source, const std::function<void(std::uint64_t)> &written = {})
    {
        write(source, 0, source.units(), written);
    }
    /** Units @first to @first + @count; @first a multiple of segment_units(). */
    void write(const array &source, std::uint64_t first, std::uint64_t count,
               const std::function<void(std::uint64_t)> &written = {});

    /** The finished file, in the memory given. Nothing may be written after. */
    std::span<const std::byte> finish();
    /** The same of a file, which is not on the disk yet. */
    void finish_file();

    std::uint64_t zero_bytes() const noexcept { return zero_bytes_; }

  private:
    struct file;
    struct target;
    void begin(const image_header &header);
    void write_units(const target &to, std::span<const std::byte> units, std::uint64_t first,
                     const std::function<void(std::uint64_t)> &written);

    std::unique_ptr<file> file_;
    checksums checked_;
    std::uint64_t zero_bytes_ = 0;
};

class image_reader {
  public:
    /** @image must live as long as the reader; it is not copied and not changed. */
    explicit image_reader(std::span<const std::byte> image, checksums checked = checksums::arrays);
    explicit image_reader(const std::string &path);
    ~image_reader();
    image_reader(const image_reader &) = delete;
    image_reader &operator=(const image_reader &) = delete;

    image_header header() const;
    std::vector<std::string> names() const;
    /** Elements of @name, if there is that. */
    std::optional<std::uint64_t> count(const std::string &name) const;

    /** Fill @target; throws -ENOENT, or -EBADMSG if type, count or checksum are not its own. */
    void read(const array &target) const { read(target, 0, target.units()); }
    void read(const array &target, std::uint64_t first, std::uint64_t count) const;

  private:
    struct file;
    struct source;
    static void read_units(const source &from, std::span<std::byte> units, std::uint64_t first);

    std::unique_ptr<file> file_;
    checksums checked_ = checksums::arrays;
};

/** Units of one segment of @a, or more if the array is shorter: bounds the memory of a move. */
std::uint64_t segment_units(const array &a);
/** Room that the image of one segment of @a can need. */
std::size_t segment_bound(const array &a);

} // namespace zc::migrate

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_IMAGE_H_INCLUDED
#define ZC_HOLDER_IMAGE_H_INCLUDED

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "descriptor.h"
#include "known_pages.h"
#include "page_reader.h"
#include "pending_pages.h"
#include "rank_memory.h"
#include "stream.h"
#include "unchanged_pages.h"

namespace zc::holder {

/**
 * A rank on its way, as a stream: what holders know of it, and the files that CRIU has made.
 *
 *     {"store": BYTES}\n pages ...    before the image, as often as need be (pre_copy.h)
 *     {"manifest": BYTES}\n CBOR
 *     {"name": NAME, "bytes": BYTES}\n content
 *     {"name": NAME, "bytes": BYTES, "parts": true}\n     and runs, as many as make BYTES
 *     {"runs": [BYTES, OFFSET, BYTES, -1, ...]}\n content    of which a run is in the store, from
 *                                                            OFFSET on, or (-1) is content that
 *                                                            follows
 *     {"runs": [...], "pages": ADDRESS}\n content            memory that CRIU has left out, from
 *                                                            ADDRESS on, as often as need be
 *     {"crc": N, "store_crc": N}\n
 *
 * The sum, CRC-32C, is of all bytes before its line, but the store; and of what runs of a file
 * stand for. Memory that was left out is not read at the other host before the rank has it: what of
 * it is in the store has a sum of its own there, the second one, which is there if memory was left
 * out.
 */

/** Of that many bytes of pages, which follow. */
std::string store_line(std::size_t bytes);

/** Of a rank that stands still: what CRIU has left out of its image. */
struct frozen_memory {
    pid_t pid;
    std::vector<page_range> pages;
    std::uint32_t store_sum;                    /* of what was sent to the store before */
    const unchanged_pages *unchanged = nullptr; /* they are not read; nullptr: there are none */
};

class image_sender {
  public:
    /** The files of @directory are read as they are sent; its logs are not. @there: pages of the
     * other host's store, by which its pages are sent; it outlives this; nullptr: none. @memory: is
     * read as it is sent. Throws error. */
    image_sender(const nlohmann::json &manifest, const std::string &directory,
                 const known_pages *there = nullptr, std::optional<frozen_memory> memory = {});
    /** Pushes what has room, for a moment. Returns whether all has been pushed. Throws error. */
    bool push(outgoing &to);
    /** push() would push more at once. */
    bool can_push(const outgoing &to) const noexcept
    {
        return !done_ && to.room() >= outgoing::kLongest;
    }
    /** Of the image, without what the store had. */
    std::uint64_t bytes() const noexcept { return bytes_; }
    /** Of the image, that the store had. */
    std::uint64_t bytes_there() const noexcept { return bytes_there_; }
    /** Of memory that CRIU has left out. */
    std::uint64_t bytes_left_out() const noexcept { return bytes_left_out_; }
    /** Of that, what was not read, since it had not been written. */
    std::uint64_t bytes_unread() const noexcept { return bytes_unread_; }

  private:
    void add(outgoing &to, std::string_view bytes);
    void add_pages(outgoing &to, const read_part &part, std::optional<std::uint64_t> address = {});
    void open_memory();
    void open_next(outgoing &to);
    void add_memory(outgoing &to);
    void add_end(outgoing &to);
    const known_pages *there_;
    std::uint64_t bytes_there_ = 0, bytes_left_out_ = 0, bytes_unread_ = 0;
    std::string head_; /* what is pushed first */
    std::vector<std::string> files_;
    std::size_t next_ = 0;
    descriptor file_;
    std::optional<frozen_memory> memory_; /* ranges of 512 KiB at most */
    std::size_t next_range_ = 0;
    std::unique_ptr<page_reader> reader_; /* of the file's pages, or of memory */
    std::uint64_t bytes_ = 0;
    std::uint32_t crc_ = 0;
    bool done_ = false;
};

class image_receiver {
  public:
    static constexpr std::uint64_t kMostOfStore = 32 << 20; /* bytes, and a part, of one call */

    explicit image_receiver(std::string directory) : directory_(std::move(directory)) {}
    /** Takes what has come, or a part of it: its owner has other things to do, and few bytes can
     * stand for many of the store. To be called again until it returns the manifest, which it does
     * when all has come. Throws error. */
    std::optional<nlohmann::json> take(incoming &from);
    /** What CRIU has left out, and the store, in which it lies; when all has come. */
    const std::vector<stored_pages> &memory() const noexcept { return memory_; }
    const descriptor &store() const noexcept { return store_; }
    /** Nothing here needs them any more: the store's memory is the rank's, if no other process has
     * it. */
    void forget_memory();
    /** Bytes of memory that the store and the files have, as long as none is forgotten. */
    std::uint64_t kept() const noexcept { return kept_; }

  private:
    enum class into { store, manifest, file, memory };
    bool take_content(std::string_view bytes, std::size_t &at);
    bool take_line(std::string_view bytes, std::size_t &at);
    void take_runs(const nlohmann::json &said);
    void take_run();
    void take_stored(std::uint64_t from, std::uint64_t bytes);
    void take_pages(std::uint64_t bytes, std::int64_t from);
    void take_end(const nlohmann::json &said);
    void check_stored(std::uint64_t from, std::uint64_t bytes) const;
    void open_store();
    void open_file(const nlohmann::json &said);
    std::string directory_;
    nlohmann::json manifest_;
    std::string manifest_bytes_;
    bool done_ = false;
    into into_ = into::manifest;
    std::uint64_t left_ = 0;         /* of what is being read */
    std::uint64_t parts_ = 0;        /* bytes of the file that runs are still to make */
    std::vector<std::int64_t> runs_; /* of a line: bytes and OFFSET of each */
    std::size_t next_run_ = 0;
    std::optional<std::uint64_t> address_; /* of the next run, which is of memory */
    descriptor store_;
    std::uint64_t stored_ = 0, kept_ = 0;
    std::uint32_t store_crc_ = 0; /* of what came before the image */
    std::vector<stored_pages> memory_;
    std::uint64_t taken_from_store_ = 0; /* by this call */
    descriptor file_;
    std::uint32_t crc_ = 0;
};

} // namespace zc::holder

#endif

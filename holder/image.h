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
#include "page_places.h"
#include "page_range.h"
#include "page_reader.h"
#include "page_runs.h"
#include "stream.h"
#include "unchanged_pages.h"

namespace zc::holder {

/**
 * A rank on its way, as a stream: its memory, what holders know of it, and the files that CRIU has
 * made.
 *
 *     {"memory": RUNS}\n runs, pages ...    as often as need be, the most before the image
 *                                           (pre_copy.h)
 *     {"manifest": BYTES}\n CBOR
 *     {"name": NAME, "bytes": BYTES}\n content
 *     {"name": NAME, "bytes": BYTES, "parts": true}\n     and runs, as many as make BYTES
 *     {"runs": RUNS}\n runs, content ...
 *     {"crc": N, "memory": N}\n
 *
 * A run (page_runs.h) is ADDRESS, BYTES and OFFSET: so many bytes of memory from ADDRESS on, or of
 * the file, lie in the other host's store from OFFSET on; or, if OFFSET is kFollows, they follow,
 * one run after the other. Those of memory are in the store then, behind all that came before.
 *
 * So the other host knows most of a rank's memory when the rank stops. What has another content
 * then is told once more: the last word counts. What CRIU has left out of the image lies where that
 * says, and the rest of it is of no matter.
 *
 * The first sum, CRC-32C, is of all bytes before its line, and of what runs of a file stand for;
 * the second, which is there if memory was left out, of where that lies.
 */

/** What the other host has of a rank before its image. */
struct sent_ahead {
    const known_pages *there = nullptr; /* pages of its store; nullptr: they are not known */
    const unchanged_pages *unchanged = nullptr; /* they are what was told; nullptr: none is */
    page_places told;                           /* of the rank's memory */
    std::uint64_t stored = 0;                   /* bytes */
    std::uint32_t crc = 0;                      /* of all that was sent */
};

/** Of a rank that stands still: what CRIU has left out of its image. */
struct frozen_memory {
    pid_t pid;
    std::vector<page_range> pages;
};

/** Pushes memory: where it lies, and the content of what follows. Returns @crc with all of that. */
std::uint32_t push_memory(outgoing &to, const page_runs &runs, std::string &&content,
                          std::uint32_t crc);

class image_sender {
  public:
    /** The files of @directory are read as they are sent; its logs are not. @memory: is read as it
     * is sent. Throws error. */
    image_sender(const nlohmann::json &manifest, const std::string &directory,
                 sent_ahead ahead = {}, std::optional<frozen_memory> memory = {});
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
    void add_file_part(outgoing &to);
    void open_memory();
    void open_next(outgoing &to);
    void add_memory(outgoing &to);
    void add_end(outgoing &to);
    sent_ahead ahead_; /* and what this has sent */
    std::uint64_t bytes_there_ = 0, bytes_left_out_ = 0, bytes_unread_ = 0;
    std::string head_; /* what is pushed first */
    std::vector<std::string> files_;
    std::size_t next_ = 0;
    descriptor file_;
    std::uint64_t file_at_ = 0;
    std::optional<frozen_memory> memory_;
    std::vector<std::vector<page_range>> parts_; /* of it, to be read */
    std::size_t next_part_ = 0;
    std::unique_ptr<page_reader> reader_; /* of the file's pages; behind the files, of memory */
    std::uint64_t bytes_ = 0;
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
    /** When all has come: where in the store the memory @left_out lies, which is in the order of
     * its addresses. Throws error if not all of it does, or not where the sender has said. */
    page_places take_memory(const std::vector<page_range> &left_out);
    const descriptor &store() const noexcept { return store_; }
    /** Nothing here needs it any more: its memory is the rank's, if no other process has it. */
    void forget_store();
    /** Bytes of memory that the store and the files have, as long as none is forgotten. */
    std::uint64_t kept() const noexcept { return kept_; }

  private:
    enum class into { manifest, file, memory, runs };
    bool take_content(std::string_view bytes, std::size_t &at);
    bool take_line(std::string_view bytes, std::size_t &at);
    void open_runs(const nlohmann::json &count);
    void take_run();
    void take_stored(std::uint64_t from, std::uint64_t bytes);
    void take_pages(const stored_pages &run);
    void take_end(const nlohmann::json &said);
    void check_stored(std::uint64_t from, std::uint64_t bytes) const;
    void open_store();
    void open_file(const nlohmann::json &said);
    std::string directory_;
    nlohmann::json manifest_;
    std::string manifest_bytes_;
    bool done_ = false;
    into into_ = into::manifest;
    std::uint64_t left_ = 0;  /* of what is being read */
    std::uint64_t parts_ = 0; /* bytes of the file that runs are still to make */
    std::uint64_t file_at_ = 0;
    std::string run_bytes_;
    std::vector<stored_pages> runs_; /* of a line */
    bool runs_are_memory_ = false;
    std::size_t next_run_ = 0;
    descriptor store_;
    std::uint64_t stored_ = 0, kept_ = 0;
    page_places memory_;
    std::optional<std::uint32_t> memory_sum_;
    std::uint64_t taken_from_store_ = 0; /* by this call */
    descriptor file_;
    std::uint32_t crc_ = 0;
};

} // namespace zc::holder

#endif

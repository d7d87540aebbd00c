/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_RECORD_H_INCLUDED
#define ZCT_RECORD_H_INCLUDED

/* A file's records as they were written: local communicator numbers, ranks of
 * communicators, collectives not taken apart. run.cpp makes rows of them. */

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "member_list.h"
#include "zct/trace.h"

namespace zc::zct {

struct members_record {
    member_list local;
    member_list remote;
    bool inter;

    /** So many a rank of the communicator can name when it sends or receives. */
    std::size_t peers() const { return inter ? remote.size() : local.size(); }
};

struct send_record {
    std::int64_t time_ns;
    std::uint32_t comm;
    std::int32_t peer;
    std::int32_t tag;
    std::uint64_t bytes;
    std::uint64_t number; /* its place in the file */
    std::uint32_t site;   /* 0 in version 1 */
    bool synchronous = false;
};

struct receive_record {
    std::int64_t posted_ns;
    std::int64_t done_ns;
    std::uint64_t order;
    std::uint64_t matched; /* order of the probe that took it, else its own */
    std::uint32_t comm;
    std::int32_t peer;
    std::int32_t tag;
    std::uint64_t bytes;
    std::uint64_t addr;
    std::uint64_t done_order; /* among receives and collective ends */
    std::uint32_t site;
};

struct lost_record {
    std::uint64_t order;
    std::uint32_t comm;
    std::int32_t peer;
    std::int32_t tag;
};

struct collective_record {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    bool ended;
    zct_kind kind;
    std::uint32_t comm;
    std::int32_t root;
    std::uint64_t order;
    std::uint64_t done_order;
    std::uint32_t site;
    std::uint64_t runs_at; /* where its runs begin among those of the file (runs.h) */
};

struct clock_record {
    std::int64_t time_ns;
    std::int64_t ahead_ns;
    std::uint64_t error_ns;
};

struct record_counts {
    std::uint64_t sends;
    std::uint64_t receives;
    std::uint64_t collectives;
    std::uint64_t sites;
};

struct file_records {
    std::int32_t rank;
    std::int32_t processes;
    std::uint64_t run;
    std::uint64_t start_ns;
    std::string mpi;
    std::string program;
    std::string command;
    std::string host;
    std::vector<members_record> communicators;
    std::vector<send_record> sends;
    std::vector<receive_record> receives;
    std::vector<lost_record> lost;
    std::vector<collective_record> collectives;
    std::vector<std::uint8_t> run_bytes;
    std::uint64_t runs_before; /* bytes of runs that are not kept any more */
    std::vector<site> sites;   /* this and what follows of version 2 and 3 only */
    std::vector<call> calls;
    std::vector<unrecorded> unrecorded_calls;
    std::vector<clock_record> clocks; /* the times are corrected by them already */
    record_counts counts;
    bool has_calls;
    std::uint64_t header_bytes;
    std::uint64_t file_bytes;
    std::uint64_t cut_bytes;
    bool complete;
};

/**
 * Decodes a file. One that ends inside a block, or whose last block is damaged,
 * was cut: its earlier blocks are returned and cut_bytes says what is missing.
 * Damage with whole blocks after it is an error.
 */
file_records read_records(const std::filesystem::path &file);

/** The same, block by block, of which only the communicators, the clocks and the counts are kept.
 */
file_records count_records(const std::filesystem::path &file);

/**
 * Decodes a file that was counted block by block: @see is called with the records of each, and with
 * all communicators so far. A collective comes when it and all before it have ended, or at the end.
 * What the program writes meanwhile behind the blocks that were counted is not read.
 */
void each_block(const std::filesystem::path &file, const file_records &counted,
                const std::function<void(file_records &)> &see);

/** As read_records, of bytes in memory; @name for the errors. */
file_records decode_records(const std::vector<std::uint8_t> &bytes, const std::string &name);

} // namespace zc::zct

#endif

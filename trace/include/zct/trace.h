/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCT_TRACE_H_INCLUDED
#define ZCT_TRACE_H_INCLUDED

/*
 * Reads traces of MPI programs that zc-trace wrote (zct/format.h). Depends on
 * the C++ library only; no global state; calls on different objects may run in
 * different threads. Everything here throws zc::zct::error, with one line
 * "file: reason", on files that cannot be read, and std::bad_alloc.
 */

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "zct/format.h"

namespace zc::zct {

class error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/** "p2p", "bcast", ... */
std::string_view kind_name(zct_kind kind);

/**
 * One message as a rank received it; a row of the trace. Collectives are taken
 * apart into point-to-point messages by their definition:
 *
 *   bcast, scatter(v)        1 from the root
 *   reduce                   at the root 1 from each other rank, all at the result
 *   allreduce, reduce_scatter(_block)   1 from rank 0 of the communicator
 *   gather(v) at the root, allgather(v), alltoall(v, w)   1 from each rank, own
 *                            included, each at its own place
 *   scan, exscan             1 from the rank below
 *   neighbor_*               1 from each neighbour
 *   barrier                  none
 *
 * In an intercommunicator "each rank" and "rank 0" are the remote group's.
 */
struct receive {
    std::uint32_t comm;  /* index into run::communicators; 0 = world */
    std::int32_t source; /* world rank, wildcards resolved */
    std::int32_t tag;    /* actual tag; -1 for collectives */
    std::uint64_t bytes; /* received, not the capacity */
    std::uint64_t addr;  /* of the first byte received: buffer + lower bound of the type */
    zct_kind kind;
    std::int64_t collective;       /* number of the collective call at this rank; -1 for p2p */
    std::int64_t posted_ns;        /* since the run began, as all times */
    std::int64_t done_ns;          /* the application's wait or test saw it complete */
    std::int64_t sent_ns;          /* the sender entered its call; done_ns if not sent_known */
    bool sent_known;               /* false: the sender's file is missing or incomplete */
    std::uint64_t done_order;      /* place in order of completion */
    std::uint64_t arrival_order;   /* place in order of sent_ns */
    std::uint32_t site = 0;        /* index into rank_trace::sites; 0 if there are none */
    std::int64_t send_number = -1; /* send::number at the sender; -1: not known, a collective */
};

/** One message as a rank sent it; collectives in the form above, without own messages. */
struct send {
    std::int64_t sent_ns;
    std::uint32_t comm;
    std::int32_t dest; /* world rank */
    std::int32_t tag;  /* -1 for collectives */
    std::uint64_t bytes;
    zct_kind kind;
    std::uint32_t site = 0;   /* as receive::site */
    std::int64_t number = -1; /* place among the rank's point-to-point sends; -1: a collective */
    bool synchronous = false; /* MPI_Ssend and its like; known if calls were recorded */
};

/** A place in the program that calls MPI. */
struct site {
    std::uint64_t address; /* behind the call */
    std::uint64_t offset;  /* the same in the file, for addr2line(1) */
    std::string module;    /* path of the program or library */
    std::string symbol;    /* exported and before it; may be empty */
};

/** A call that may wait. */
struct call {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    zct_function function;
    std::uint32_t site;
    std::vector<std::uint64_t> sends; /* send::number of those it completed. It also completed
                                         the receives and collectives that are done at end_ns */
};

/** Calls at a site of which the trace has nothing else. */
struct unrecorded {
    zct_unrecorded what;
    std::uint32_t site;
    std::uint64_t calls;
    std::uint64_t bytes; /* that they moved */
    std::uint64_t ns;    /* that they took */
};

/** A collective call, not taken apart. */
struct collective_call {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    bool ended;
    zct_kind kind;
    std::uint32_t comm; /* as receive::comm */
    std::int32_t root;  /* world rank; -1: none, or that of an intercommunicator */
    std::size_t nth;    /* place among the rank's calls on the communicator */
    std::uint32_t site;
};

/** All of one rank. */
struct rank_trace {
    std::int32_t rank;
    std::vector<receive> receives; /* in order of posting: the row number is the index */
    std::vector<send> sends;       /* in order of time */
    bool complete;                 /* the program reached MPI_Finalize and the file is whole */
    std::uint64_t cut_bytes;       /* at the end of the file, in an unfinished block */
    std::string host;
    std::vector<collective_call> collectives; /* in the order in which they returned */
    bool has_calls = false;                   /* the next four were recorded */
    std::vector<site> sites;
    std::vector<call> calls; /* in order of their ends */
    std::vector<unrecorded> unrecorded_calls;
    std::uint64_t clock_error_ns = 0; /* how far its times may be off those of rank 0 */
};

struct communicator {
    std::vector<std::int32_t> members; /* world ranks; processes outside the world are
                                          numbered from run::processes */
    std::vector<std::int32_t> remote;  /* the other group of an intercommunicator */
};

/** A run: those of its ranks whose files were given. */
struct run {
    std::string name; /* of the folder, without ".zct" */
    std::string program;
    std::string command;
    std::string mpi;
    std::int32_t processes;
    std::uint64_t id;
    std::uint64_t start_ns;        /* since 1970 */
    std::vector<rank_trace> ranks; /* by rank */
    std::vector<communicator> communicators;
    std::uint64_t unmatched_receives; /* point-to-point, of senders whose files are here */
    std::uint64_t unmatched_sends;    /* to ranks whose files are here */
    std::uint64_t size_mismatches;    /* matched, but the bytes differ */
};

/** Is it a .zct file, by its first bytes? False also if it cannot be opened. */
bool is_trace_file(const std::filesystem::path &file);

/** Is it a folder that holds r<rank>.zct files? */
bool is_trace_folder(const std::filesystem::path &folder);

/** The files of a trace, r<rank>.zct: those of the folder, in order of ranks, then those of the
    programs that it spawned, in folders below. None if the folder cannot be read. */
std::vector<std::filesystem::path> trace_files(const std::filesystem::path &folder);

/**
 * A folder of r<rank>.zct files, or one such file (then no sender is known but itself). With
 * @unreadable, files that cannot be read are left out, and "file: reason" of each is added there;
 * it is an error only if none can be read.
 */
run load(const std::filesystem::path &path, std::vector<std::string> *unreadable = nullptr);

/**
 * As load(), for runs whose collectives are too many messages to have in memory at once: in every
 * MPI_Alltoall of 256 ranks they are 65,536. @see is called with each rank, and sees all that it
 * received. Of the run that is returned, and of what was sent, the messages of collectives are left
 * out; places in orders count them.
 */
run load_in_turn(const std::filesystem::path &path, std::vector<std::string> *unreadable,
                 const std::function<void(const rank_trace &)> &see);

class run_reader;

/**
 * A run whose rows may be more than fit into memory: they are made one after the other. Some 60 MB
 * are taken, however many there are, and 24 bytes for each collective call of a rank; what does not
 * fit there is put in order in temporary files (of TMPDIR or /var/tmp). Files are read up to where
 * they ended when the object was made. Also throws while rows are made.
 */
class run_in_turn {
  public:
    /** @path, @unreadable: as of load(). */
    explicit run_in_turn(const std::filesystem::path &path,
                         std::vector<std::string> *unreadable = nullptr);
    ~run_in_turn();
    run_in_turn(const run_in_turn &) = delete;
    run_in_turn &operator=(const run_in_turn &) = delete;

    /** The run and its ranks, without rows, sites and calls. What is not matched counts the ranks
        whose receives were made. */
    const run &about() const;

    /** What a rank received, in order of posting. @place: in about().ranks. Each rank once, and
       none after one behind it. */
    void each_receive(std::size_t place, const std::function<void(const receive &)> &see);

    /** What all ranks sent, in order of time. */
    void each_send(const std::function<void(std::int32_t source, const send &)> &see);
    std::uint64_t nr_sends(std::size_t place) const;

  private:
    std::unique_ptr<run_reader> reader_;
};

/** What a file's header and records say, block by block: quick, and in little memory. */
struct summary {
    std::int32_t rank;
    std::int32_t processes;
    std::uint64_t sends;
    std::uint64_t receives;
    std::uint64_t collectives;
    std::uint64_t communicators;
    std::uint64_t file_bytes;
    std::uint64_t cut_bytes;
    bool complete;
    std::string mpi;
    std::string program;
};
summary summarize(const std::filesystem::path &file);

/** Writes receives as the CSV traces have them: i,comm,src,tag,bytes,addr,kind,coll,t_post,t_done,
    t_sent,done_order,arrival_order; microseconds, addr in hexadecimal. */
class csv_writer {
  public:
    explicit csv_writer(std::ostream &out);
    void add(const receive &r);

  private:
    std::ostream &out_;
    std::uint64_t rows_ = 0;
};

void write_csv(std::ostream &out, const rank_trace &rank);

/** All sends of the run in order of time: t,src,dst,bytes,kind. */
void write_events_csv(std::ostream &out, run_in_turn &run);

/** What meta.json says of the rows of a rank. */
class rank_figures {
  public:
    void add(const receive &r);

    std::uint64_t receives() const { return receives_; }
    /** Of the rows, those that are not where they would be if all came in order of posting. */
    double share_out_of_order() const;
    /** Of the point-to-point messages, those sent before their receive was posted. */
    double share_sent_before_posted() const;

  private:
    std::uint64_t receives_ = 0;
    std::uint64_t out_of_order_ = 0;
    std::uint64_t point_to_point_ = 0;
    std::uint64_t sent_before_posted_ = 0;
};

/** meta.json beside such CSV files. @figures: of each rank, whose receives were made. */
void write_meta_json(std::ostream &out, const run_in_turn &run,
                     const std::vector<rank_figures> &figures);

} // namespace zc::zct

#endif

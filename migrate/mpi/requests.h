/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mpi.h>
#include <string>
#include <unordered_map>
#include <vector>

#include "handle.h"
#include "layer.h"
#include "slots.h"

namespace zc::migrate {

/** A type that MPI keeps while a copy of this lives, whatever the program does to its own. */
class kept_type {
  public:
    explicit kept_type(MPI_Datatype type);
    operator MPI_Datatype() const noexcept { return *type_; }

  private:
    std::shared_ptr<MPI_Datatype> type_;
};

/** Where data goes that a request receives. */
struct received_block {
    void *at;
    MPI_Count count;
    kept_type type;
};

/**
 * A request as the program has it.
 *
 *     inactive ──start──▶ active ──completes──▶ inactive   a persistent one
 *                         active ──completes──▶ gone        any other
 */
struct request_record {
    enum class kind : std::uint8_t { other, send, receive };

    MPI_Request real = MPI_REQUEST_NULL;
    const char *made_by = ""; /* the function */
    kind what = kind::other;
    bool is_persistent = false;
    bool is_active = true;
    bool is_cancelled = false;
    int peer = MPI_PROC_NULL; /* or MPI_ANY_SOURCE */
    int tag = 0;
    std::atomic<const members *> peers{nullptr}; /* of whom @peer is one: requests::keep() */

    /** What most have none of. */
    struct rare {
        /** A persistent one: make it again, for MPI has the communicator anew. */
        std::function<int(MPI_Request *)> make;
        /** When it is complete: what MPI writes its new communicator to, and whose that is. */
        std::unique_ptr<MPI_Comm> fresh;
        MPI_Comm owner = MPI_COMM_NULL;
        /** What it receives, while that is noted or answered from a record. */
        std::vector<received_block> blocks;
    };
    std::unique_ptr<rare> more;
    rare &with_more()
    {
        if (!more)
            more = std::make_unique<rare>();
        return *more;
    }

    const std::vector<received_block> &blocks() const noexcept
    {
        static const std::vector<received_block> none;
        return more ? more->blocks : none;
    }
    const members *known_peers() const noexcept { return peers.load(std::memory_order_relaxed); }
    void reset() noexcept
    {
        real = MPI_REQUEST_NULL;
        made_by = "";
        what = kind::other;
        is_persistent = is_cancelled = false;
        is_active = true;
        peer = MPI_PROC_NULL;
        tag = 0;
        peers.store(nullptr, std::memory_order_relaxed);
        more.reset();
    }
};

/** What a message that was found by MPI_Mprobe() is. */
struct found_message {
    shared_members peers;
    int source;
};

/**
 * The requests that the program has. Handles of it are looked up without a lock.
 */
class requests {
  public:
    static requests &instance()
    {
        static requests *const one = new requests; /* never destroyed: exit handlers may call MPI */
        return *one;
    }
    void threads() noexcept { records_.threads(); }

    /** nullptr of a handle that is none of the layer's. */
    request_record *find(MPI_Request handle) const noexcept
    {
        return request_handle::is_virtual(handle) ? records_.find(request_handle::number(handle))
                                                  : nullptr;
    }
    static MPI_Request real(MPI_Request handle) noexcept
    {
        const request_record *found = layer::is_on() ? instance().find(handle) : nullptr;
        return found ? found->real : handle;
    }

    /** The program's handle of @real, which was made by @made_by. */
    MPI_Request adopt(MPI_Request real, const char *made_by);
    /** The same of a message. */
    MPI_Request adopt(MPI_Request real, const char *made_by, request_record::kind what,
                      comm_argument where, int peer, int tag);
    /** One that the predecessor had: @handle is its. */
    void restore(MPI_Request handle, const char *made_by, request_record::kind what,
                 comm_argument where, int peer, int tag);
    /** @list stays for as long as a request has it. */
    const members *keep(const shared_members &list);
    /** It is one that can be started over and over. */
    void persist(MPI_Request handle, std::function<int(MPI_Request *)> make);
    void start(request_record &one);
    /**
     * MPI has said @code of it, and @status unless that is nullptr: is it complete? Then
     * @handle is MPI_REQUEST_NULL, unless it is persistent.
     */
    void settle(MPI_Request &handle, request_record &one, int code, MPI_Status *status);
    void forget(MPI_Request &handle)
    {
        records_.give_back(request_handle::number(handle));
        handle = MPI_REQUEST_NULL;
    }

    void found(MPI_Message message, const found_message &what);
    found_message take(MPI_Message message);

    /** Those that are active: "3 live requests (first: MPI_Irecv of rank 2, tag 4)", or "". */
    std::string live() const;
    std::size_t used() const noexcept { return records_.used(); }

    /** Persistent ones, around a move: MPI loses what it has of them, and makes them again. */
    void release_persistent();
    void make_persistent();
    /** Handles of these. */
    std::vector<std::int64_t> persistent() const;
    /** A successor has taken over: it has those of @kept, and others are gone. */
    void keep_persistent(const std::vector<std::int64_t> &kept);
    /** How many of @all this process does not have. */
    std::size_t missing(const std::vector<std::int64_t> &all) const;

  private:
    /** @real becomes the program's handle. nullptr of what needs no record. */
    request_record *take_record(MPI_Request &real, const char *made_by);
    void describe(request_record &one, request_record::kind what, const communicator &where,
                  int peer, int tag);
    void settle_slowly(MPI_Request &handle, request_record &one, int code, MPI_Status *status);
    void drop_lists();

    slots<request_record, 20, 6> records_;
    std::mutex mutex_;
    std::unordered_map<MPI_Message, found_message> messages_;
    /* Of the communicators of requests, which may be gone before these. */
    std::unordered_map<const members *, shared_members> lists_;
    std::size_t most_lists_ = kFewLists; /* so many are kept before some are dropped */
    static constexpr std::size_t kFewLists = 64;
};

} // namespace zc::migrate

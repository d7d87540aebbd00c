/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <string>
#include <vector>

#include "handle.h"
#include "journal.h"
#include "requests.h"

namespace zc::migrate {

/**
 * The calls of the program from MPI_Init() to its first safe point.
 *
 *     closed ──▶ recording ──▶ closed      a rank that communicates: what calls return is noted
 *        └─────▶ answering ──▶ closed      a successor: what they returned in the predecessor is
 *                                          returned again, and MPI is not called
 *
 * What is noted goes from a rank to its successor, and from there to the next one.
 */
class recorder {
  public:
    enum class state { closed, recording, answering };

    static recorder &instance();
    static bool is_open() noexcept { return open_.load(std::memory_order_relaxed); }
    static bool is_answering() noexcept
    {
        return is_open() && instance().state_ == state::answering;
    }

    /** At most @most bytes are noted. */
    void record(std::size_t most);
    /** @give_up: called, and does not return, when the program does something else. */
    void answer(std::vector<std::byte> bytes, std::function<void(const std::string &)> give_up);
    /** The first safe point. */
    void close() noexcept;
    /** What a successor is given, which may be nothing. */
    const std::vector<std::byte> &bytes() const noexcept { return journal_.bytes(); }

    /* ---- what a call returns: notes it, or gives it ---- */

    class visitor {
      public:
        explicit visitor(std::vector<std::byte> &to) : out_(to) {}
        explicit visitor(journal::reader from) : out_(nothing_), in_(from), gives_(true) {}
        visitor(const visitor &) = delete;
        visitor &operator=(const visitor &) = delete;

        void bytes(void *at, std::size_t length);
        template <typename Value>
        void value(Value &one)
        {
            bytes(&one, sizeof one);
        }
        template <typename Value>
        void array(Value *all, std::int64_t count)
        {
            if (all && count > 0)
                bytes(all, sizeof *all * static_cast<std::size_t>(count));
        }
        void status(MPI_Status *one)
        {
            MPI_Status none{};
            value(one == MPI_STATUS_IGNORE ? none : *one);
        }
        void statuses(MPI_Status *all, int count)
        {
            for (int i = 0; i < count; i++)
                status(all == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : all + i);
        }
        void text(char *at, std::size_t room);
        void info(MPI_Info *one);
        void communicator_(MPI_Comm *one);
        void group_(MPI_Group *one);

        /** Received data: at once, or when the request of this call completes. */
        void data(void *at, MPI_Count count, MPI_Datatype type);
        template <typename Count, typename Place>
        void parts(void *at, const Count counts[], const Place places[], MPI_Datatype type, int n)
        {
            MPI_Aint low, extent;
            if (at == MPI_IN_PLACE)
                return;
            PMPI_Type_get_extent(type, &low, &extent);
            for (int i = 0; i < n; i++)
                data(static_cast<char *>(at) + places[i] * extent, counts[i], type);
        }
        template <typename Count, typename Place>
        void parts(void *at, const Count counts[], const Place places[], const MPI_Datatype types[],
                   int n)
        {
            for (int i = 0; i < n; i++)
                data(static_cast<char *>(at) + places[i], counts[i], types[i]);
        }
        /** Data that comes after this is that of a request. */
        void later() noexcept { later_ = true; }
        void request(MPI_Request *one, const char *made_by, request_record::kind what,
                     comm_argument where, int peer, int tag);

        bool gives() const noexcept { return gives_; }

      private:
        friend class recorder;
        static inline std::vector<std::byte> nothing_;
        journal::writer out_;
        journal::reader in_{{}};
        bool gives_ = false, later_ = false;
        std::vector<received_block> blocks_;
    };

    /**
     * Calls @body, which calls MPI, unless its answer is known. @with: arguments to compare;
     * @returns visits what it returns.
     */
    template <typename With, typename Body, typename Returns>
    static int call(const char *name, With with, Body body, Returns returns)
    {
        if (!is_open()) [[likely]]
            return body();
        recorder &own = instance();
        if (own.state_ == state::answering)
            return *name == journal::kLocal && !own.journal_.skip_local(name)
                       ? body()
                       : own.give(name, with(), [&](visitor &to) { returns(to); });
        const int code = body();
        own.note(name, with(), code, [&](visitor &to) { returns(to); });
        return code;
    }
    /** The same of a call that completes some of @handles. */
    template <typename Body, typename Returns>
    static int complete(const char *name, int count, MPI_Request handles[], Body body,
                        Returns returns)
    {
        if (!is_open()) [[likely]]
            return body();
        recorder &own = instance();
        const auto visits = [&](visitor &to) {
            own.completed(to, count, handles);
            returns(to);
        };
        std::vector<std::int64_t> with;
        for (int i = 0; i < count; i++)
            with.push_back(value_of(handles[i]));
        if (own.state_ == state::answering)
            return own.give(name, with, visits);
        own.completions_.clear();
        const int code = body();
        own.note(name, with, code, visits);
        return code;
    }
    /** The request is complete, and is about to be forgotten. */
    void settled(MPI_Request handle, const request_record &one);
    /** A successor cannot be told the outcome of such a call. */
    static void refuse(const char *name)
    {
        if (is_answering())
            instance().give_up_(std::string(name) +
                                "() before the first safe point of a resumed process: it cannot "
                                "be answered from the record, zcm_on_rebuild() has to make it");
    }

  private:
    friend class visitor;
    int give(const char *name, journal::arguments with,
             const std::function<void(visitor &)> &visits);
    void note(const char *name, journal::arguments with, int code,
              const std::function<void(visitor &)> &visits);
    void completed(visitor &to, int count, MPI_Request handles[]);

    static inline std::atomic<bool> open_{false};
    state state_ = state::closed;
    journal journal_{std::size_t{0}};
    std::mutex mutex_;
    std::function<void(const std::string &)> give_up_;
    struct completion {
        std::int64_t handle;
        std::vector<std::byte> data;
    };
    std::vector<completion> completions_; /* of the present call */
};

} // namespace zc::migrate

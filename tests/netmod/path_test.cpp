// SPDX-License-Identifier: BSD-3-Clause
// How ranks leave and come back, several at a time (zc_path.h), on a network that is simulated: the
// real zc_path.c, zc_path_message.c, zc_anchor.c, zc_detach.c, zc_vci_locks.c, zc_peer.c and
// zc_parked.c of up to eight ranks with up to three VCIs each, with orders, messages of a program,
// delays and failures. All of a schedule follows from its seed.
//
// A rank with several VCIs has as many threads, each of which sends, receives and makes progress on
// all of them, and now and then is the landing thread, while no other is in MPI. Any other may run
// whenever one takes or gives back the lock of a VCI. Each call of UCX is checked for the lock of
// its VCI, or those of all.
//
// ZC_PATH_SCHEDULES   how many random schedules
// ZC_PATH_SEED        only this one, with all that happens on standard error
// ZC_PATH_FAILURES    after how many that went wrong there are no more; 10
// ZC_PATH_TRACE       all that happens in directed schedules on standard error
// ZC_PATH_VERBOSE     why ranks were refused, and which messages were lost
#include "path/rank.h"
#include "zc_order.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// Of zc_wire.h, which is C.
extern "C" {
#define _Static_assert static_assert
#define _Alignof alignof
#include "zc_wire.h"
#undef _Static_assert
#undef _Alignof
}

namespace {

constexpr uint64_t kLate = 12000; // steps, after which UCX reports a loss in the end
constexpr int kBinding = 4;       // MPIDI_ZC_PATH_BINDING

const char *name_of(unsigned kind)
{
    switch (kind) {
    case MPIDI_ZC_TELL_REBIND:
        return "REBIND";
    case MPIDI_ZC_TELL_BOUND:
        return "BOUND";
    case MPIDI_ZC_TELL_DONE:
        return "DONE";
    case MPIDI_ZC_TELL_PARKS:
        return "PARKS";
    case MPIDI_ZC_TELL_FETCHED:
        return "FETCHED";
    case MPIDI_ZC_TELL_HEARD:
        return "HEARD";
    case MPIDI_ZC_TELL_KNOWS:
        return "KNOWS";
    case MPIDI_ZC_TELL_QUIET:
        return "QUIET";
    case MPIDI_ZC_TELL_REFUSE:
        return "REFUSE";
    case MPIDI_ZC_TELL_RESUME:
        return "RESUME";
    case MPIDI_ZC_TELL_PAUSE:
        return "PAUSE";
    case MPIDI_ZC_TELL_ASK:
        return "ASK";
    case MPIDI_ZC_TELL_STAYS:
        return "STAYS";
    case MPIDI_ZC_TELL_GOES:
        return "GOES";
    case MPIDI_ZC_TELL_STALE:
        return "STALE";
    case MPIDI_ZC_TELL_INTRODUCE:
        return "INTRODUCE";
    case MPIDI_ZC_TELL_WANTS:
        return "WANTS";
    case MPIDI_ZC_TELL_KEY:
        return "KEY";
    default:
        return "another message";
    }
}

// ---- fibers: a rank that is detached waits for its token inside a call ----

class Fiber {
  public:
    using Body = void (*)(void *);

    Fiber(Body run, void *with)
        : body(run), argument(with), stack(std::make_unique_for_overwrite<char[]>(kStack))
    {
        getcontext(&own);
        own.uc_stack.ss_sp = stack.get();
        own.uc_stack.ss_size = kStack;
        own.uc_link = nullptr;
        const auto self = reinterpret_cast<uintptr_t>(this);
        makecontext(&own, reinterpret_cast<void (*)()>(&begin), 2, static_cast<unsigned>(self),
                    static_cast<unsigned>(self >> 32));
#if defined(__SANITIZE_THREAD__)
        tsan = __tsan_create_fiber(0);
#endif
    }
    ~Fiber()
    {
#if defined(__SANITIZE_THREAD__)
        __tsan_destroy_fiber(tsan);
#endif
    }
    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;

    // Goes on with it until it pauses.
    void resume()
    {
#if defined(__SANITIZE_THREAD__)
        tsan_caller = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(tsan, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
        void *fake = nullptr;
        __sanitizer_start_switch_fiber(&fake, stack.get(), kStack);
#endif
        swapcontext(&caller, &own);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
    }

    // Is called on it.
    void pause()
    {
#if defined(__SANITIZE_THREAD__)
        __tsan_switch_to_fiber(tsan_caller, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
        void *fake = nullptr;
        __sanitizer_start_switch_fiber(&fake, caller_stack, caller_size);
#endif
        swapcontext(&own, &caller);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(fake, &caller_stack, &caller_size);
#endif
    }

  private:
    static void begin(unsigned low, unsigned high)
    {
        auto *self = reinterpret_cast<Fiber *>(static_cast<uintptr_t>(high) << 32 | low);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(nullptr, &self->caller_stack, &self->caller_size);
#endif
        self->body(self->argument);
        std::abort();
    }

    Body body;
    void *argument;
    static constexpr size_t kStack = 256 * 1024;
    std::unique_ptr<char[]> stack;
    ucontext_t own{}, caller{};
#if defined(__SANITIZE_ADDRESS__)
    const void *caller_stack = nullptr;
    size_t caller_size = 0;
#endif
#if defined(__SANITIZE_THREAD__)
    void *tsan = nullptr, *tsan_caller = nullptr;
#endif
};

// ---- UCX ----

struct Request {
    zc_test_worker *worker = nullptr;
    ucp_send_nbx_callback_t callback = nullptr;
    void *user_data = nullptr;
    bool is_complete = false, is_freed = false, is_close = false;
    struct Connection *flushes = nullptr; // waits for the puts of this side, and until it is wired
    size_t side = 0;
};

struct Connection;

// A message that is announced, until its sender has no part in it any more.
struct Announced {
    Connection *connection;
    int side; // of the sender
    Request *request;
    bool is_here = false;
};

struct Packet {
    enum Kind {
        Message,
        Announcement,
        Fetch,
        Data,
        Ack,
        Put,
        PutDone,
        WireRequest,
        WireReply,
        WireDone
    } kind = Message;
    unsigned id = 0;
    int window = 0;   // of a put
    uint32_t key = 0; // likewise
    std::vector<char> header, data;
    Announced *announced = nullptr;

    bool wires() const { return kind >= WireRequest; }
    bool is_path() const { return kind == Message && id == MPIDI_ZC_AM_PATH; }
    MPIDI_ZC_path_message_t path() const
    {
        MPIDI_ZC_path_message_t message;
        std::memcpy(&message, header.data(), sizeof message);
        return message;
    }
};

} // namespace

struct zc_test_worker {
    int rank = 0, vci = 0;
    uint64_t id = 0, port = 0;
    bool is_alive = true, is_copy = false;
    uint64_t unseen_until = 0;         // no thread looks at its VCI before
    std::map<uint64_t, unsigned> made; // endpoints, by the worker that they are to
    std::vector<Connection *> connections;
    struct Completion {
        Request *request;
        ucs_status_t status;
        uint64_t due;
    };
    std::vector<Completion> completions;
};

struct zc_test_endpoint {
    zc_test_worker *worker = nullptr;
    Connection *connection = nullptr;
    int side = 0;
    ucp_err_handler_cb_t failed = nullptr;
    void *argument = nullptr;
    bool is_lost = false, is_closed = false;
};

namespace {

ucs_status_ptr_t error_of(ucs_status_t status)
{
    return reinterpret_cast<ucs_status_ptr_t>(static_cast<intptr_t>(status));
}

using Worker = zc_test_worker;
using Endpoint = zc_test_endpoint;

// Of two workers, or of one with itself: then all goes from side 0 to side 1.
struct Connection {
    std::array<Worker *, 2> worker{};
    std::array<Endpoint *, 2> ep{};
    std::array<std::deque<Packet>, 2> to;        // what is under way to this side
    std::array<std::optional<uint64_t>, 2> loss; // when this side hears of it
    bool is_dead = false;
    int announced = 0; // messages that are not here yet
    // Who makes it sends a request, the other side a reply, and that is answered as well: a side is
    // wired when it has heard of the other. UCX 1.13 ends a process that loses a connection before.
    std::array<bool, 2> wired{};
    uint64_t stalls_until = 0; // nothing arrives
    // Of windows: by this side, what is not known to be there; and when this side answers the
    // other's.
    std::array<int, 2> puts{};
    std::array<std::deque<uint64_t>, 2> answers;
};

struct Options {
    uint64_t seed = 1;
    int ranks = 3;
    int vcis = 1;
    int nodes = 8;
    zc_test_bulk_t bulk = ZC_TEST_BULK_APART;
    bool acks = false;
    int seconds = 20;   // until LEAVE is refused: 1000 steps each
    int fail_sends = 0; // one of so many fails
    int fail_all = 0;   // the same of all allocations and calls
    int fail_landing = 0;
    int fail_nth = 0; // this one fails, of control messages
    int traffic = 30; // of 100 steps of a rank, in how many it sends
    bool late_losses = false, ports_again = false, slow_ranks = false, stops = false;
    bool stalls = false;     // connections, each for itself
    int active_steps = 1500; // per schedule: with orders and messages
    int between = 100, away = 100;
    bool group = false, copies = false, finalizes = false, hinders = false, kills = false;
    bool left_before = false; // ranks may, before the others knew them
    bool random_orders = true;
    bool trace = false;
    bool round_robin = false; // each rank in turn, and it gets all that has arrived
};

class World;
struct Rank;

struct Thread {
    Rank *rank = nullptr;
    int number = 0;
    std::unique_ptr<Fiber> fiber;
    bool is_inside = false; // MPI
    bool yields = false;    // it pauses only since others are to run as well
    int waits_for = -1;     // the lock of a VCI
    // When it gave back the lock of VCI 0 last: Rank's.
    uint64_t sent = 0, all_taken = 0;
};

struct Rank {
    World *world = nullptr;
    int number = 0;
    const zc_test_rank_t *code = nullptr;
    std::vector<Worker *> workers; // by VCI
    std::vector<Thread> threads;
    Thread *current = nullptr;
    const Thread *alone = nullptr; // no other thread enters MPI, and this one when all have left
    std::array<const Thread *, ZC_TEST_VCIS> owners{}; // of the locks
    bool has_locks = false;                            // not in MPI_Init and MPI_Finalize
    uint64_t nr_sent = 0, all_taken = 0; // messages; how often a thread has taken all locks
    bool is_over = false;                // no step of it any more
    bool finalizes = false, is_finalized = false;
    int weight = 1;
    // the holder
    enum { Idle, Asked, Away, Binding } state = Idle;
    struct Order {
        MPIDI_ZC_order_t order;
        uint32_t incarnation;
    };
    std::deque<Order> orders;
    uint64_t next_order = 0, asked = 0, back = 0, stopped_until = 0;
    uint32_t first = 0;       // incarnation, which the others do not know
    uint32_t incarnation = 0; // of the last token
    uint32_t bound = 0;       // of the last that was accepted by all
    int left = 0, refused = 0;
    unsigned group = 0; // bits: ranks that are told at the same time
    bool is_stale_given = false;
    std::string why; // it was refused last
    // the program
    enum Act { Send, Announce, Credit, PutTo };
    struct Task {
        Act act;
        int to, vci; // or window
    };
    std::deque<Task> tasks; // before all else
    // by VCI and rank
    std::array<std::array<uint32_t, ZC_TEST_RANKS>, ZC_TEST_VCIS> sent{}, received{};
    std::map<void *, size_t> memory;
    Packet handled; // the message that it gets now

    bool has(const Worker *worker) const
    {
        return std::find(workers.begin(), workers.end(), worker) != workers.end();
    }
};

struct Copy {
    Worker *worker = nullptr;
    int rank = 0;
    uint64_t begun = 0;
    std::map<int, Endpoint *> awaited;
};

struct Statistics {
    uint64_t schedules = 0, steps = 0, left = 0, refused = 0, together = 0, stale = 0, ended = 0;
    std::array<uint64_t, 32> lost{}; // messages, by their kind
    std::map<std::string, uint64_t> why;
    uint64_t introduced = 0, asked = 0, killed = 0;
    uint64_t puts = 0, keys = 0;     // of UCX, and to memory that was registered anew
    uint64_t early = 0, credits = 0; // by other VCIs: messages that came before BOUND; credit
    // While a thread took the locks of all VCIs: another has sent messages, or has had all before.
    uint64_t sent_between = 0, overtaken = 0;
    uint64_t landing = 0; // steps of landing threads
    int most = 0;         // ranks that were away at a time
} statistics;

class Modules {
  public:
    static const zc_test_rank_t *get(int number)
    {
        static Modules all;
        return all.code[static_cast<size_t>(number)];
    }

  private:
    // Each rank has static variables of its own, so each is a file of its own for the linker.
    Modules()
    {
        auto folder = (std::filesystem::temp_directory_path() / "zc-path-XXXXXX").string();
        if (mkdtemp(folder.data()) == nullptr)
            std::abort();
        for (size_t i = 0; i < code.size(); i++) {
            const auto file = std::filesystem::path(folder) / (std::to_string(i) + ".so");
            std::filesystem::copy_file(ZC_PATH_RANK, file);
            void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
            if (handle == nullptr) {
                fprintf(stderr, "%s\n", dlerror());
                std::abort();
            }
            code[i] =
                reinterpret_cast<const zc_test_rank_t *(*)()>(dlsym(handle, "zc_test_rank"))();
        }
        std::filesystem::remove_all(folder);
    }
    std::array<const zc_test_rank_t *, ZC_TEST_RANKS> code{};
};

// ---- all ranks ----

class World {
  public:
    explicit World(const Options &o) : options(o), random(o.seed)
    {
        std::vector<char> addresses(static_cast<size_t>(o.ranks * o.vcis) * ZC_TEST_ADDRESS);
        std::vector<uint32_t> incarnations;
        for (int i = 0; i < o.ranks; i++) {
            ranks.push_back(std::make_unique<Rank>());
            Rank &rank = *ranks.back();
            rank.world = this;
            rank.number = i;
            rank.code = Modules::get(i);
            for (int v = 0; v < o.vcis; v++)
                rank.workers.push_back(new_worker(
                    i, v, &addresses[static_cast<size_t>(i * o.vcis + v) * ZC_TEST_ADDRESS]));
            rank.first = rank.incarnation = o.left_before ? static_cast<uint32_t>(i + 2) % 4 : 0;
            incarnations.push_back(rank.first);
            rank.next_order = below(static_cast<uint64_t>(options.between) * 2 + 1);
            rank.weight = options.slow_ranks && one_in(3) ? 1 : 8;
        }
        initial = addresses;
        const bool trace = options.trace;
        const auto faults = std::tuple(options.fail_all, options.fail_sends);
        options.fail_all = options.fail_sends = 0;
        for (auto &rank : ranks) {
            rank->code->init(&calls, rank.get(), rank->number, o.ranks, o.vcis, addresses.data(),
                             incarnations.data(), rank->workers.data(), o.nodes, o.bulk, o.seconds);
            rank->has_locks = true;
            rank->threads.resize(static_cast<size_t>(o.vcis));
            for (int t = 0; t < o.vcis; t++) {
                Thread &thread = rank->threads[static_cast<size_t>(t)];
                thread.rank = rank.get();
                thread.number = t;
                thread.fiber = std::make_unique<Fiber>(&run_thread, &thread);
            }
        }
        std::tie(options.fail_all, options.fail_sends) = faults;
        options.trace = trace;
    }

    ~World()
    {
        for (auto &rank : ranks) {
            rank->has_locks = false;
            if (!rank->is_over && job_end.empty())
                rank->code->end();
            if (violation.empty() && job_end.empty() && !rank->memory.empty() && !rank->is_over)
                ADD_FAILURE() << "seed " << options.seed << ": rank " << rank->number
                              << " has not freed " << rank->memory.size() << " blocks";
            for (auto &[p, size] : rank->memory)
                free(p);
        }
        statistics.schedules++;
        statistics.steps += step_number;
    }
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    // ---- what a test does ----

    // A whole schedule at random. Returns what was wrong, or nothing.
    std::string run()
    {
        while (goes_on() && step_number < active_end())
            step();
        quieten();
        await("it does not come to rest", &World::is_settled);
        for (int i = 0; i < 2 && !options.finalizes; i++)
            can_leave(static_cast<int>(below(ranks.size())));
        if (goes_on() && options.finalizes) {
            for (auto &rank : ranks)
                rank->finalizes = true;
            await("MPI_Finalize does not end", &World::is_finalized);
        }
        check_end();
        return violation;
    }

    bool goes_on() const { return violation.empty() && job_end.empty(); }

    // From here on no new orders and no new messages: all that were away come back.
    void quieten()
    {
        is_quiet = true;
        for (auto &rank : ranks) {
            rank->back = std::min(rank->back, step_number + below(300));
            rank->finalizes = options.finalizes && one_in(3);
        }
    }

    void step()
    {
        if (!goes_on())
            return;
        step_number++;
        Rank &rank = options.round_robin ? *ranks[step_number % ranks.size()] : choose();
        if (rank.is_over || stands_still(rank))
            return;
        hold(rank);
        if (rank.is_over)
            return; // it has been killed
        resume(rank);
        if (!copies.empty())
            step_copies();
        check(rank);
    }

    void steps(int nr)
    {
        for (int i = 0; i < nr * options.ranks; i++)
            step();
    }

    void await(const char *what_if_not, bool (World::*is_so)() const)
    {
        const uint64_t limit = step_number + settle_steps();
        while (goes_on() && !(this->*is_so)() && step_number < limit)
            step();
        if (goes_on() && !(this->*is_so)())
            violate("%s", what_if_not);
    }

    // What has been refused or promised holds nobody back once all are at rest.
    void can_leave(int rank)
    {
        if (!goes_on() || has_faults() || killed >= 0)
            return;
        Rank &one = *ranks[static_cast<size_t>(rank)];
        while (goes_on() && !is_silent())
            step();
        steps(20); // each handles what it has
        leave(rank);
        one.back = step_number;
        while (goes_on() && one.state == Rank::Asked)
            step();
        if (goes_on() && one.state == Rank::Idle)
            violate("all are at rest, and rank %d does not leave: %s", rank, one.why.c_str());
        await("it does not come to rest again", &World::is_settled);
    }

    // Until all is still again; false: it is not.
    bool settle()
    {
        quieten();
        await("it does not come to rest", &World::is_settled);
        check_end();
        return goes_on();
    }

    // @group: bits; the holder says that these are told, too.
    void leave(int rank, unsigned group = 0)
    {
        Rank &one = *ranks[static_cast<size_t>(rank)];
        say("holder of %d: LEAVE, with %x", rank, group);
        for (unsigned other = 0; group >> other; other++) {
            if (group >> other & 1)
                one.orders.push_back({MPIDI_ZC_ORDER_WITH, other});
        }
        one.orders.push_back({MPIDI_ZC_ORDER_LEAVE, 0});
        one.state = Rank::Asked;
        one.asked = step_number;
        one.back = UINT64_MAX;
    }

    // Is done by the next thread of the program that runs.
    void act(int rank, Rank::Task task) { (*this)[rank].tasks.push_back(task); }

    void come_back(int rank) { ranks[static_cast<size_t>(rank)]->back = 0; }

    void hinder(int rank, bool hinders) { ranks[static_cast<size_t>(rank)]->code->hinder(hinders); }

    void kill(int rank)
    {
        Rank &one = *ranks[static_cast<size_t>(rank)];
        say("rank %d is killed", rank);
        killed = rank;
        statistics.killed++;
        one.is_over = true;
        for (Worker *worker : one.workers)
            close_worker(worker, true);
    }

    Rank &operator[](int rank) { return *ranks[static_cast<size_t>(rank)]; }
    int nr_away() const
    {
        return static_cast<int>(std::count_if(
            ranks.begin(), ranks.end(), [](const auto &r) { return r->state == Rank::Away; }));
    }
    uint64_t now() const { return step_number; }
    const std::string &wrong() const { return violation; }
    const std::string &ended() const { return job_end; }
    int nr_failed() const { return failed_calls; }

    void describe() const
    {
        for (const auto &rank : ranks) {
            static const std::array states = {"idle", "asked", "away", "binding"};
            fprintf(stderr, "rank %d: %s%s, %d messages not complete\n", rank->number,
                    states[rank->state], rank->is_over ? ", over" : "", rank->code->awaited());
            for (int other = 0; other < options.ranks && !rank->is_over; other++) {
                char text[800];
                rank->code->describe(other, text, sizeof text);
                fprintf(stderr, "   to %d: %s\n", other, text);
            }
            for (const Thread &thread : rank->threads)
                fprintf(stderr, "   thread %d: %s MPI, waits for lock %d\n", thread.number,
                        thread.is_inside ? "in" : "not in", thread.waits_for);
            for (size_t v = 0; v < rank->workers.size(); v++) {
                if (rank->owners[v])
                    fprintf(stderr, "   thread %d has lock %d\n", rank->owners[v]->number,
                            static_cast<int>(v));
            }
        }
    }

  private:
    // ---- chance ----

    uint64_t below(uint64_t n) { return n == 0 ? 0 : random() % n; }
    bool one_in(int n) { return n > 0 && below(static_cast<uint64_t>(n)) == 0; }
    bool percent(int n) { return below(100) < static_cast<uint64_t>(n); }

    Rank &choose()
    {
        for (;;) {
            Rank &rank = *ranks[below(ranks.size())];
            if (rank.weight == 8 || below(8) < static_cast<uint64_t>(rank.weight))
                return rank;
        }
    }

    uint64_t active_end() const { return static_cast<uint64_t>(options.active_steps); }
    uint64_t settle_steps() const
    {
        return 2 * kLate + static_cast<uint64_t>(options.seconds) * 1000 +
               6000 * static_cast<uint64_t>(options.ranks);
    }

    // ---- what is checked ----

    __attribute__((format(printf, 2, 3))) void violate(const char *format, ...)
    {
        char text[300];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        say("WRONG: %s", text);
        if (violation.empty())
            violation = "step " + std::to_string(step_number) + ": " + text;
    }

    __attribute__((format(printf, 2, 3))) void say(const char *format, ...) const
    {
        if (!options.trace)
            return;
        va_list arguments;
        va_start(arguments, format);
        fprintf(stderr, "%6llu ", static_cast<unsigned long long>(step_number));
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }

    bool has_faults() const
    {
        return options.fail_all || options.fail_sends || options.fail_landing || options.fail_nth;
    }

    // Now and then nothing arrives by a connection for a while, though something does by others.
    bool stalls(Connection &c)
    {
        if (options.stalls && !is_quiet && step_number >= c.stalls_until && one_in(30))
            c.stalls_until = step_number + below(60 * static_cast<uint64_t>(options.ranks));
        return !is_quiet && step_number < c.stalls_until;
    }

    // Now and then a rank stands still for longer than others wait, but not in the end, when each
    // has to leave that is told to.
    bool stands_still(Rank &rank)
    {
        if (options.stops && step_number > rank.stopped_until && !is_quiet && one_in(2000))
            rank.stopped_until = step_number + below(4000);
        return !is_quiet && step_number < rank.stopped_until;
    }

    void check(const Rank &rank)
    {
        if (killed < 0 && nr_away() == options.ranks)
            violate("all ranks are away");
        const uint64_t deadline = static_cast<uint64_t>(options.seconds) * 1000 +
                                  (options.stops ? 5000 : 0) +
                                  600 * static_cast<uint64_t>(options.ranks);
        if (rank.state == Rank::Asked && step_number > rank.asked + deadline && killed < 0)
            violate("rank %d does not answer LEAVE", rank.number);
    }

    bool is_settled() const
    {
        if (killed >= 0 || !copies.empty())
            return false;
        for (const auto &rank : ranks) {
            if (rank->state != Rank::Idle || !rank->code->all_open() || rank->code->awaited() > 0)
                return false;
            for (const auto &other : ranks) {
                const auto from = static_cast<size_t>(rank->number);
                const auto to = static_cast<size_t>(other->number);
                for (size_t v = 0; v < rank->workers.size(); v++) {
                    if (other->received[v][from] != rank->sent[v][to])
                        return false;
                }
                if (rank->code->outstanding(other->number) > 0)
                    return false;
            }
        }
        return true;
    }

    // Is no message under way?
    bool is_silent() const
    {
        return std::all_of(ranks.begin(), ranks.end(), [](const auto &rank) {
            return std::all_of(rank->workers.begin(), rank->workers.end(), [](const Worker *w) {
                return std::all_of(w->connections.begin(), w->connections.end(),
                                   [](const Connection *c) {
                                       return c->is_dead || (c->to[0].empty() && c->to[1].empty());
                                   });
            });
        });
    }

    bool is_finalized() const
    {
        return std::all_of(ranks.begin(), ranks.end(),
                           [](const auto &r) { return r->is_finalized; }) &&
               is_settled();
    }

    void check_end()
    {
        if (!violation.empty())
            return;
        if (killed >= 0) {
            const std::string expected =
                "lost its connection to rank " + std::to_string(killed) + ":";
            if (job_end.find(expected) == std::string::npos &&
                job_end != "a message could not be sent")
                violate("rank %d was killed, and nobody says so: %s", killed, job_end.c_str());
        } else if (!job_end.empty()) {
            statistics.ended++;
            const bool is_allowed =
                options.fail_all > 0 || job_end.find("no memory for a message") == 0;
            if (failed_calls == 0 || !is_allowed ||
                job_end.find("lost its connection") != std::string::npos ||
                job_end.find("assertion") != std::string::npos)
                violate("the job ends: %s", job_end.c_str());
        } else {
            for (const auto &rank : ranks) {
                for (const auto &other : ranks) {
                    if (rank->code->incarnation(other->number) != other->bound && rank != other)
                        violate("rank %d knows incarnation %u of rank %d, which is %u",
                                rank->number, rank->code->incarnation(other->number), other->number,
                                other->bound);
                }
            }
        }
    }

    // ---- holders ----

    // Some of the others are going to be told soon.
    void begin_group(const Rank &first)
    {
        unsigned group = 1U << first.number;
        for (const auto &other : ranks)
            group |= unsigned{percent(70)} << other->number;
        for (auto &other : ranks) {
            if (other->state == Rank::Idle && group >> other->number & 1) {
                other->next_order = step_number + below(2) * below(40);
                other->group = group;
            }
        }
    }

    void hold(Rank &rank)
    {
        if (rank.state == Rank::Idle && options.random_orders && !is_quiet && !rank.finalizes &&
            step_number >= rank.next_order) {
            const unsigned known = one_in(2) ? rank.group : 0;
            rank.group = 0;
            if (known == 0 && options.group && one_in(2))
                begin_group(rank);
            leave(rank.number, known);
        } else if (rank.state == Rank::Away && step_number >= rank.back && rank.orders.empty()) {
            if (!rank.is_stale_given && rank.bound == rank.incarnation && one_in(4)) {
                say("holder of %d: BIND %u, which is stale", rank.number, rank.incarnation);
                rank.is_stale_given = true;
                rank.orders.push_back({MPIDI_ZC_ORDER_BIND, rank.incarnation});
                return;
            }
            rank.incarnation += 1 + static_cast<uint32_t>(below(2));
            say("holder of %d: BIND %u", rank.number, rank.incarnation);
            rank.orders.push_back({MPIDI_ZC_ORDER_BIND, rank.incarnation});
            rank.state = Rank::Binding;
        }
        if (options.copies && rank.bound > 0 && rank.bound == rank.incarnation && copies.empty() &&
            one_in(300) &&
            (rank.state == Rank::Idle || rank.state == Rank::Asked || rank.state == Rank::Away))
            begin_copy(rank);
        if (options.hinders && !is_quiet && one_in(60))
            rank.code->hinder(one_in(3));
        if (is_quiet && options.hinders)
            rank.code->hinder(false);
        if (options.kills && killed < 0 && nr_away() > 0 && step_number > active_end() / 3 &&
            rank.state == Rank::Idle && one_in(30))
            kill(rank.number);
    }

    void answered(Rank &rank, const std::string &answer, const std::string &more)
    {
        say("rank %d: %s %s", rank.number, answer.c_str(), more.c_str());
        if (answer == "DETACHED" && rank.state == Rank::Asked) {
            rank.state = Rank::Away;
            rank.left++;
            statistics.left++;
            statistics.together += nr_away() > 1;
            statistics.most = std::max(statistics.most, nr_away());
            rank.is_stale_given = false;
            if (rank.back != UINT64_MAX || options.random_orders) {
                rank.back = step_number + below(static_cast<uint64_t>(options.away) * 2 + 1);
                if (options.group && one_in(2))
                    rank.back += 400;
                if (is_quiet)
                    rank.back = std::min(rank.back, step_number + 300);
            }
        } else if (answer == "BOUND" && rank.state == Rank::Binding &&
                   more == std::to_string(rank.incarnation)) {
            rank.state = Rank::Idle;
            rank.bound = rank.incarnation;
            rank.next_order = step_number + below(static_cast<uint64_t>(options.between) * 2 + 1);
        } else if (answer.starts_with("REFUSED") && rank.state == Rank::Asked) {
            bool moves = false;
            for (const char *why :
                 {"no other rank stays", "another rank that is away comes back by it",
                  "another rank waits for one that is away"})
                moves = moves || more.starts_with(why);
            if (moves != (answer == "REFUSED AGAIN"))
                violate("rank %d says %s %s", rank.number, answer.c_str(), more.c_str());
            rank.state = Rank::Idle;
            rank.refused++;
            rank.why = more;
            statistics.refused++;
            statistics.why[more.substr(0, more.find(" (rank"))]++;
            rank.next_order = step_number + below(static_cast<uint64_t>(options.between) + 1);
            const bool on_time = !has_faults() && !options.late_losses && !options.stops &&
                                 options.seconds >= 20 && killed < 0;
            if (on_time && more.find("in time") != std::string::npos)
                violate("rank %d does not leave, since the others do not answer", rank.number);
        } else if (answer == "REFUSED" && rank.state == Rank::Away && rank.is_stale_given &&
                   more.find("not higher") != std::string::npos) {
            return;
        } else {
            violate("rank %d says %s %s", rank.number, answer.c_str(), more.c_str());
        }
    }

    // ---- a second copy of a rank ----

    void begin_copy(const Rank &rank)
    {
        char address[ZC_TEST_ADDRESS];
        Copy copy;
        copy.rank = rank.number;
        copy.worker = new_worker(rank.number, 0, address);
        const uint32_t length = sizeof address;
        std::array<char, sizeof length + sizeof address> list; // of addresses
        std::memcpy(list.data(), &length, sizeof length);
        std::memcpy(list.data() + sizeof length, address, sizeof address);
        copy.worker->is_copy = true;
        copy.begun = step_number;
        say("a copy of rank %d comes back, with %u", rank.number, rank.bound);
        for (const auto &other : ranks) {
            if (other->number == rank.number)
                continue;
            const uint32_t known = other->incarnation == other->first ? 0 : other->incarnation;
            if (known != rank.code->incarnation(other->number))
                continue; // it has the address of one that has gone
            char to[ZC_TEST_ADDRESS];
            write_address(other->workers[0], to);
            ucp_ep_params_t params{};
            params.address = reinterpret_cast<const ucp_address_t *>(to);
            ucp_ep_h ep = nullptr;
            ep_create(copy.worker, &params, &ep);
            MPIDI_ZC_path_message_t message{};
            message.sender = static_cast<uint64_t>(rank.number);
            message.receiver = static_cast<uint32_t>(other->number);
            message.kind = MPIDI_ZC_TELL_REBIND;
            message.incarnation = rank.bound;
            (void)send(ep, MPIDI_ZC_AM_PATH, &message, sizeof message, list.data(), list.size(),
                       nullptr);
            copy.awaited[other->number] = ep;
        }
        copies.push_back(copy);
    }

    void step_copies()
    {
        for (auto &copy : copies) {
            for (Connection *connection : copy.worker->connections) {
                const int side = connection->worker[0] == copy.worker ? 0 : 1;
                auto &queue = connection->to[static_cast<size_t>(side)];
                if (queue.empty() || !one_in(4))
                    continue;
                if (queue.front().wires()) {
                    const Packet::Kind kind = queue.front().kind;
                    queue.pop_front();
                    wire(*connection, static_cast<size_t>(side), kind);
                    continue;
                }
                const auto message = queue.front().path();
                queue.pop_front();
                const int sender = static_cast<int>(message.sender);
                say("the copy of %d has %s of %d", copy.rank, name_of(message.kind), sender);
                if (message.kind != MPIDI_ZC_TELL_STALE || copy.awaited.erase(sender) != 1)
                    violate("rank %d answers a stale copy %s", sender, name_of(message.kind));
                statistics.stale++;
            }
            std::erase_if(copy.awaited, [](const auto &one) {
                const Connection &c = *one.second->connection;
                const Worker *to = c.worker[static_cast<size_t>(1 - one.second->side)];
                return (c.is_dead && c.to[static_cast<size_t>(one.second->side)].empty()) ||
                       (to && to->rank != one.first);
            });
            if (step_number > copy.begun + 8000 && has_faults())
                copy.awaited.clear();
            if (step_number > copy.begun + 8000 && !copy.awaited.empty())
                violate("rank %d does not answer a stale copy of %d", copy.awaited.begin()->first,
                        copy.rank);
            if (copy.awaited.empty())
                close_worker(copy.worker, true);
        }
        std::erase_if(copies, [](const Copy &copy) { return copy.awaited.empty(); });
    }

    // ---- ranks ----

    // Runs its threads until one has done a step, or waits for other ranks, or for its turn.
    void resume(Rank &rank)
    {
        do {
            if (!choose_thread(rank)) {
                violate("all threads of rank %d wait for locks", rank.number);
                return;
            }
            rank.current->yields = false;
            rank.current->fiber->resume();
        } while (rank.current->yields && goes_on() && !rank.is_over && !one_in(6));
    }

    bool choose_thread(Rank &rank)
    {
        const size_t nr = rank.threads.size();
        const size_t first = nr > 1 ? below(nr) : 0;
        for (size_t i = 0; i < nr; i++) {
            rank.current = &rank.threads[(first + i) % nr];
            if (may_run(rank, *rank.current))
                return true;
        }
        return false;
    }

    static bool may_run(const Rank &rank, const Thread &thread)
    {
        if (thread.waits_for >= 0)
            return !rank.owners[static_cast<size_t>(thread.waits_for)];
        if (thread.is_inside)
            return true;
        if (rank.alone)
            return rank.alone == &thread && is_empty(rank);
        return !rank.finalizes || thread.number == 0;
    }

    // Is no thread in MPI?
    static bool is_empty(const Rank &rank)
    {
        return std::none_of(rank.threads.begin(), rank.threads.end(),
                            [](const Thread &thread) { return thread.is_inside; });
    }

    static void run_thread(void *argument)
    {
        Thread &thread = *static_cast<Thread *>(argument);
        Rank &rank = *thread.rank;
        World &world = *rank.world;
        for (;;) {
            const bool finalizes = rank.finalizes && !rank.is_finalized;
            const bool lands =
                !rank.finalizes && !rank.alone && rank.threads.size() > 1 && world.one_in(5);
            if (finalizes || lands) {
                rank.alone = &thread;
                while (!is_empty(rank))
                    yield(thread);
            }
            thread.is_inside = true;
            if (finalizes) {
                rank.has_locks = false;
                rank.code->finalize();
                rank.is_finalized = true;
            }
            statistics.landing += lands;
            rank.code->step(lands);
            for (const Thread *owner : rank.owners) {
                if (owner == &thread)
                    world.violate("rank %d leaves MPI with a lock", rank.number);
            }
            thread.is_inside = false;
            if (lands)
                rank.alone = nullptr;
            thread.fiber->pause();
        }
    }

    // Lets other threads run.
    static void yield(Thread &thread)
    {
        thread.yields = true;
        thread.fiber->pause();
    }

    // ---- locks ----

    static void lock(void *self, int vci)
    {
        Rank &rank = *static_cast<Rank *>(self);
        World &world = *rank.world;
        if (!rank.has_locks)
            return;
        Thread &thread = *rank.current;
        const auto v = static_cast<size_t>(vci);
        for (size_t i = 0; i <= v; i++) {
            if (rank.owners[i] == &thread)
                world.violate("rank %d takes the lock of VCI %d inside that of VCI %d", rank.number,
                              vci, static_cast<int>(i));
        }
        if (rank.threads.size() > 1 && world.one_in(3))
            yield(thread);
        thread.waits_for = vci;
        while (rank.owners[v])
            yield(thread);
        thread.waits_for = -1;
        rank.owners[v] = &thread;
        if (rank.threads.size() > 1 && has_all(rank)) {
            statistics.sent_between += rank.nr_sent - thread.sent;
            statistics.overtaken += rank.all_taken > thread.all_taken;
            rank.all_taken++;
        }
    }

    static void unlock(void *self, int vci)
    {
        Rank &rank = *static_cast<Rank *>(self);
        World &world = *rank.world;
        if (!rank.has_locks)
            return;
        Thread &thread = *rank.current;
        const auto v = static_cast<size_t>(vci);
        if (rank.owners[v] != &thread)
            world.violate("rank %d gives back the lock of VCI %d, which it has not", rank.number,
                          vci);
        rank.owners[v] = nullptr;
        thread.sent = rank.nr_sent;
        thread.all_taken = rank.all_taken;
        if (rank.threads.size() > 1 && world.one_in(3))
            yield(thread);
    }

    // Has the thread that runs the locks of all VCIs?
    static bool has_all(const Rank &rank)
    {
        return std::all_of(rank.workers.begin(), rank.workers.end(), [&](const Worker *worker) {
            return rank.owners[static_cast<size_t>(worker->vci)] == rank.current;
        });
    }

    // It is about to use @vci of UCX, or, -1, all.
    void check_locks(const Rank &rank, int vci, const char *what)
    {
        if (!rank.has_locks || !rank.current)
            return;
        if (vci < 0 && !has_all(rank))
            violate("rank %d %s, and has not the locks of all VCIs", rank.number, what);
        if (vci >= 0 && rank.owners[static_cast<size_t>(vci)] != rank.current)
            violate("rank %d %s on VCI %d, and has not the lock", rank.number, what, vci);
    }

    void carry_out(Rank &rank, const Rank::Task &task)
    {
        const auto [act, to, vci] = task;
        if (act == Rank::PutTo) {
            if (to != rank.number && rank.code->put(to, vci))
                say("rank %d puts to window %d of %d", rank.number, vci, to);
            return;
        }
        lock(&rank, vci);
        if (act == Rank::Credit && to != rank.number)
            rank.code->credit(to, vci);
        else if (act != Rank::Credit)
            send_message(rank, to, vci, act == Rank::Announce);
        unlock(&rank, vci);
    }

    void send_message(Rank &rank, int to, int vci, bool announces)
    {
        uint32_t &number = rank.sent[static_cast<size_t>(vci)][static_cast<size_t>(to)];
        number++; // what a process sends to itself may be there at once
        if (rank.code->send(to, vci, number - 1, announces))
            say("rank %d sends %u to %d on VCI %d%s", rank.number, number - 1, to, vci,
                announces ? ", announced" : "");
        else
            number--;
        rank.nr_sent++;
    }

    static void program(void *self)
    {
        Rank &rank = *static_cast<Rank *>(self);
        World &world = *rank.world;
        if (world.is_quiet) {
            if (world.one_in(3))
                rank.code->fetch_any();
            return;
        }
        while (!rank.tasks.empty() && !rank.finalizes) {
            const Rank::Task task = rank.tasks.front();
            rank.tasks.pop_front();
            world.carry_out(rank, task);
        }
        if (!rank.finalizes && world.percent(world.options.traffic)) {
            const int to = static_cast<int>(world.below(world.ranks.size()));
            const int vci = static_cast<int>(world.below(rank.workers.size()));
            world.carry_out(rank, {world.one_in(3) ? Rank::Announce : Rank::Send, to, vci});
            if (world.one_in(4))
                world.carry_out(rank, {Rank::Credit, to, vci});
            const int target = static_cast<int>(world.below(world.ranks.size()));
            const int window = static_cast<int>(world.below(ZC_TEST_WINDOWS));
            world.carry_out(rank, {Rank::PutTo, target, window});
        }
        if (world.one_in(10))
            rank.code->fetch_any();
    }

    static void received(void *self, int sender, int vci, uint32_t value)
    {
        Rank &rank = *static_cast<Rank *>(self);
        uint32_t &expected = rank.received[static_cast<size_t>(vci)][static_cast<size_t>(sender)];
        if (value != expected)
            rank.world->violate("rank %d gets message %u of rank %d on VCI %d, and %u is next",
                                rank.number, value, sender, vci, expected);
        expected = value + 1;
        statistics.early += vci > 0 && rank.code->state(sender) == kBinding;
    }

    static void landed(void *) {}

    static void *allocate(void *self, size_t size)
    {
        Rank &rank = *static_cast<Rank *>(self);
        void *p = malloc(size);
        std::memset(p, 0xa5, size);
        rank.memory[p] = size;
        return p;
    }

    static void release(void *self, void *p)
    {
        Rank &rank = *static_cast<Rank *>(self);
        if (rank.memory.erase(p) != 1)
            std::abort();
        free(p);
    }

    static bool fails(void *self, const char *what)
    {
        Rank &rank = *static_cast<Rank *>(self);
        World &world = *rank.world;
        const Options &o = world.options;
        bool failing = false;
        if (std::strcmp(what, "send") == 0) {
            world.nr_sends++;
            failing = world.one_in(o.fail_sends) || world.one_in(o.fail_all) ||
                      (o.fail_nth > 0 && world.nr_sends == o.fail_nth);
        } else if (std::strcmp(what, "landing memory") == 0) {
            failing = world.one_in(o.fail_landing);
        } else {
            failing = world.one_in(o.fail_all);
        }
        if (failing)
            world.say("rank %d: %s fails", rank.number, what);
        world.failed_calls += failing;
        return failing;
    }

    static uint64_t now_ns(void *self)
    {
        return static_cast<Rank *>(self)->world->step_number * 1000000;
    }

    static void abort(void *self, const char *text)
    {
        Rank &rank = *static_cast<Rank *>(self);
        rank.world->say("rank %d ends the job: %s", rank.number, text);
        rank.world->job_end = text;
        rank.is_over = true;
        for (;;)
            rank.current->fiber->pause();
    }

    static int order(void *self, bool wait, uint32_t *incarnation)
    {
        Rank &rank = *static_cast<Rank *>(self);
        if (wait)
            rank.world->check_locks(rank, -1, "waits for the token");
        while (wait && rank.orders.empty())
            rank.current->fiber->pause();
        if (rank.orders.empty())
            return MPIDI_ZC_ORDER_NONE;
        const Rank::Order order = rank.orders.front();
        rank.orders.pop_front();
        *incarnation = order.incarnation;
        return order.order;
    }

    static void answer(void *self, const char *answer, const char *more)
    {
        Rank &rank = *static_cast<Rank *>(self);
        rank.world->answered(rank, answer, more ? more : "");
    }

    // It takes no more orders.
    static void closed(void *self)
    {
        Rank &rank = *static_cast<Rank *>(self);
        if (rank.state == Rank::Asked)
            rank.state = Rank::Idle;
        else if (rank.state != Rank::Idle)
            rank.world->violate("rank %d is in MPI_Finalize, and not bound", rank.number);
        rank.orders.clear();
    }

    static void pause(void *self) { static_cast<Rank *>(self)->current->fiber->pause(); }

    // ---- the network ----

    static void write_address(const Worker *worker, char *address)
    {
        std::memcpy(address, &worker->id, sizeof worker->id);
        std::memcpy(address + sizeof worker->id, &worker->port, sizeof worker->port);
    }

    Worker *new_worker(int rank, int vci, char *address)
    {
        auto worker = std::make_unique<Worker>();
        worker->rank = rank;
        worker->vci = vci;
        worker->id = workers.size() + 1;
        worker->port = worker->id;
        if (options.ports_again && one_in(2)) {
            // One that a worker which is gone had, if nobody has it.
            const Worker *gone = workers.empty() ? nullptr : workers[below(workers.size())].get();
            if (gone && !live_at(gone->port))
                worker->port = gone->port;
        }
        write_address(worker.get(), address);
        workers.push_back(std::move(worker));
        return workers.back().get();
    }

    Worker *live_at(uint64_t port) const
    {
        for (const auto &worker : workers) {
            if (worker->port == port && worker->is_alive)
                return worker.get();
        }
        return nullptr;
    }

    static ucp_worker_h worker_open(void *self, int vci, char address[ZC_TEST_ADDRESS])
    {
        Rank &rank = *static_cast<Rank *>(self);
        rank.world->check_locks(rank, -1, "makes a worker");
        Worker *&worker = rank.workers[static_cast<size_t>(vci)];
        worker = rank.world->new_worker(rank.number, vci, address);
        rank.world->say("rank %d has worker %u", rank.number, static_cast<unsigned>(worker->id));
        return worker;
    }

    static void worker_close(void *self, ucp_worker_h worker)
    {
        Rank &rank = *static_cast<Rank *>(self);
        rank.world->check_locks(rank, -1, "destroys a worker");
        rank.world->close_worker(worker, false);
    }

    void schedule_loss(Connection &connection, int side)
    {
        auto &due = connection.loss[static_cast<size_t>(side)];
        if (due)
            return;
        uint64_t delay = one_in(4) ? 0 : below(60 * static_cast<uint64_t>(options.ranks));
        if (options.late_losses && one_in(5))
            delay = kLate / 2 + below(kLate / 2);
        due = step_number + delay;
    }

    void note_lost(const Packet &packet, int to, bool is_killed)
    {
        if (packet.is_path()) {
            const auto message = packet.path();
            say("%s of %d to %d is lost", name_of(message.kind), static_cast<int>(message.sender),
                static_cast<int>(message.receiver));
            if (message.kind < statistics.lost.size())
                statistics.lost[message.kind]++;
        } else if (!is_killed && !packet.wires()) {
            violate("a message of the program to rank %d is lost", to);
        }
    }

    void close_worker(Worker *worker, bool is_killed)
    {
        say("worker %u of rank %d is destroyed", static_cast<unsigned>(worker->id), worker->rank);
        worker->is_alive = false;
        for (const auto &completion : worker->completions) {
            if (!is_killed && !completion.request->is_close)
                violate("rank %d destroys a worker that has not completed all", worker->rank);
        }
        for (Connection *connection : worker->connections) {
            Connection &c = *connection;
            if (c.announced > 0 && !is_killed && !c.is_dead)
                violate("rank %d destroys a worker, and an announced message is not fetched",
                        worker->rank);
            if (c.puts[0] + c.puts[1] > 0 && !is_killed && !c.is_dead)
                violate("rank %d destroys a worker, and a put is under way", worker->rank);
            const bool is_self = c.worker[0] == c.worker[1];
            if (!c.is_dead && !is_killed && !is_self && !(c.wired[0] && c.wired[1]) &&
                !c.worker[0]->is_copy && !c.worker[1]->is_copy)
                violate("rank %d destroys a worker, and a connection to rank %d on VCI %d is half "
                        "wired up",
                        worker->rank, c.worker[c.worker[0] == worker]->rank, worker->vci);
            for (int side = 0; side < 2; side++) {
                auto &queue = c.to[static_cast<size_t>(side)];
                const Worker *receiver = c.worker[static_cast<size_t>(side)];
                size_t kept = 0;
                if (receiver && receiver->is_alive && !is_self)
                    kept = one_in(2) ? queue.size() : below(queue.size() + 1);
                for (size_t i = 0; i < queue.size(); i++) {
                    if (i >= kept || !queue[i].is_path())
                        note_lost(queue[i], receiver ? receiver->rank : -1, is_killed);
                }
                queue.resize(kept);
                if (receiver && receiver->is_alive)
                    schedule_loss(c, side);
            }
            c.is_dead = true;
        }
    }

    Connection *new_connection(Worker *one, Worker *other)
    {
        connections.push_back(std::make_unique<Connection>());
        Connection *connection = connections.back().get();
        connection->worker = {one, other};
        one->connections.push_back(connection);
        if (other && other != one)
            other->connections.push_back(connection);
        return connection;
    }

    void ep_create(Worker *worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
    {
        uint64_t id = 0, port = 0;
        const char *address = reinterpret_cast<const char *>(params->address);
        std::memcpy(&id, address, sizeof id);
        std::memcpy(&port, address + sizeof id, sizeof port);
        Worker *target = workers[id - 1].get();
        const unsigned number = worker->made[id]++;
        const auto key = std::tuple(std::min(id, worker->id), std::max(id, worker->id), number);
        Connection *&place = matched[key];
        Worker *instead = target->is_alive ? nullptr : live_at(port);
        if (!place || (place->is_dead && instead)) {
            place = new_connection(worker, target->is_alive ? target : instead);
            if (!place->worker[1])
                place->is_dead = true;
            else if (place->worker[1] == worker)
                place->wired = {true, true};
            else
                send_wire(*place, 1, Packet::WireRequest);
        }
        endpoints.push_back(std::make_unique<Endpoint>());
        Endpoint *made = endpoints.back().get();
        made->worker = worker;
        made->connection = place;
        made->side = place->worker[0] == worker ? 0 : 1;
        made->failed = params->err_handler.cb;
        made->argument = params->err_handler.arg;
        place->ep[static_cast<size_t>(made->side)] = made;
        if (place->is_dead)
            schedule_loss(*place, made->side);
        *ep = made;
    }

    void send_wire(Connection &c, size_t to, Packet::Kind kind)
    {
        c.to[to].emplace_back();
        c.to[to].back().kind = kind;
    }

    void wire(Connection &c, size_t side, Packet::Kind kind)
    {
        c.wired[side] = kind != Packet::WireRequest;
        if (kind != Packet::WireDone && !c.is_dead)
            send_wire(c, 1 - side,
                      kind == Packet::WireRequest ? Packet::WireReply : Packet::WireDone);
    }

    static ucs_status_t rank_ep_create(void *self, ucp_worker_h worker,
                                       const ucp_ep_params_t *params, ucp_ep_h *ep)
    {
        Rank &rank = *static_cast<Rank *>(self);
        rank.world->check_locks(rank, worker->vci, "makes an endpoint");
        rank.world->ep_create(worker, params, ep);
        return UCS_OK;
    }

    Request *new_request(Worker *worker, const ucp_request_param_t *param)
    {
        requests.push_back(std::make_unique<Request>());
        Request *request = requests.back().get();
        request->worker = worker;
        if (param) {
            request->callback = param->cb.send;
            request->user_data = param->user_data;
        }
        return request;
    }

    static ucs_status_ptr_t ep_close(void *self, ucp_ep_h ep, const ucp_request_param_t *param)
    {
        Rank &rank = *static_cast<Rank *>(self);
        World &world = *rank.world;
        Connection &c = *ep->connection;
        if (ep->is_closed || !rank.has(ep->worker)) {
            world.violate("rank %d closes an endpoint that it does not have", rank.number);
            return nullptr;
        }
        world.check_locks(rank, ep->worker->vci, "closes an endpoint");
        ep->is_closed = true;
        c.ep[static_cast<size_t>(ep->side)] = nullptr;
        if ((param->flags & UCP_EP_CLOSE_FLAG_FORCE) && !c.is_dead) {
            c.is_dead = true;
            for (int side = 0; side < 2; side++) {
                auto &queue = c.to[static_cast<size_t>(side)];
                for (const auto &packet : queue)
                    world.note_lost(packet, side == ep->side ? rank.number : -1, world.killed >= 0);
                queue.clear();
            }
            world.schedule_loss(c, 1 - ep->side);
        }
        if (world.one_in(2))
            return nullptr;
        Request *request = world.new_request(ep->worker, param);
        request->is_close = true;
        ep->worker->completions.push_back({request, UCS_OK, world.step_number});
        return request;
    }

    static ucs_status_ptr_t ep_flush(void *self, ucp_ep_h ep, const ucp_request_param_t *param)
    {
        Rank &rank = *static_cast<Rank *>(self);
        World &world = *rank.world;
        if (ep->is_closed || !rank.has(ep->worker))
            world.violate("rank %d flushes an endpoint that it does not have", rank.number);
        world.check_locks(rank, ep->worker->vci, "flushes an endpoint");
        if (world.one_in(4))
            return error_of(UCS_ERR_NO_MEMORY);
        if (ep->is_lost)
            return error_of(UCS_ERR_CONNECTION_RESET);
        Connection &c = *ep->connection;
        const auto side = static_cast<size_t>(ep->side);
        if (c.puts[side] == 0 && c.wired[side] && ep->worker->completions.empty() &&
            world.one_in(3))
            return nullptr;
        Request *request = world.new_request(ep->worker, param);
        request->flushes = &c;
        request->side = side;
        ep->worker->completions.push_back(
            {request, UCS_OK,
             world.step_number + world.below(10 * static_cast<uint64_t>(world.options.ranks))});
        return request;
    }

    static ucs_status_ptr_t worker_flush(void *self, ucp_worker_h worker)
    {
        Rank &rank = *static_cast<Rank *>(self);
        World &world = *rank.world;
        if (!rank.has(worker) || !worker->is_alive)
            world.violate("rank %d flushes a worker that it does not have", rank.number);
        world.check_locks(rank, worker->vci, "flushes a worker");
        if (world.one_in(2))
            return nullptr;
        Request *request = world.new_request(worker, nullptr);
        worker->completions.push_back({request, UCS_OK, world.step_number + world.below(30)});
        return request;
    }

    static ucs_status_t request_status(void *self, void *request)
    {
        const auto *one = static_cast<Request *>(request);
        const Rank &rank = *static_cast<Rank *>(self);
        if (one->is_freed)
            rank.world->violate("a request is used that has been freed");
        rank.world->check_locks(rank, one->worker->vci, "looks at a request");
        return one->is_complete ? UCS_OK : UCS_INPROGRESS;
    }

    static void request_free(void *self, void *request)
    {
        auto *one = static_cast<Request *>(request);
        const Rank &rank = *static_cast<Rank *>(self);
        if (one->is_freed)
            rank.world->violate("a request is freed twice");
        rank.world->check_locks(rank, one->worker->vci, "frees a request");
        one->is_freed = true;
    }

    ucs_status_ptr_t send(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                          const void *data, size_t length, const ucp_request_param_t *param)
    {
        Connection &c = *ep->connection;
        const auto *begin = static_cast<const char *>(header);
        const auto *payload = static_cast<const char *>(data);
        Packet packet;
        packet.id = id;
        packet.header.assign(begin, begin + header_length);
        if (length > 0)
            packet.data.assign(payload, payload + length);
        if (ep->is_closed || !ep->worker->is_alive) {
            violate("a message is sent over an endpoint that is closed");
            return error_of(UCS_ERR_CANCELED);
        }
        if (packet.is_path()) {
            const auto message = packet.path();
            say("rank %d tells %u %s%s, round %u, leader's %u%s, known %u, number %u, incarnation "
                "%u, "
                "of %u",
                ep->worker->rank, message.receiver, name_of(message.kind),
                c.is_dead ? " (lost)" : "", message.round, message.leader_round,
                message.leads ? " (leads)" : "", message.known_round, message.number,
                message.incarnation, message.subject);
            statistics.introduced += message.kind == MPIDI_ZC_TELL_INTRODUCE;
            statistics.asked += message.kind == MPIDI_ZC_TELL_ASK;
            statistics.keys += message.kind == MPIDI_ZC_TELL_KEY;
        }
        if (ep->is_lost)
            return error_of(UCS_ERR_CONNECTION_RESET);
        if (c.is_dead) {
            note_lost(packet, -1, killed >= 0);
            return nullptr;
        }
        const int other = 1 - ep->side;
        const Worker *to = c.worker[static_cast<size_t>(other)];
        if (!packet.is_path()) {
            zc_test_message_t message;
            std::memcpy(&message, header, sizeof message);
            if (to->rank != static_cast<int>(message.receiver) || to->vci != ep->worker->vci)
                violate("a message of the program goes to another rank or VCI");
            statistics.credits += message.credit && to->vci > 0;
        }
        auto &queue = c.to[static_cast<size_t>(other)];
        if (param && param->flags & UCP_AM_SEND_FLAG_RNDV) {
            announced.push_back(std::make_unique<Announced>());
            *announced.back() = {
                .connection = &c, .side = ep->side, .request = new_request(ep->worker, param)};
            packet.kind = Packet::Announcement;
            packet.announced = announced.back().get();
            c.announced++;
            queue.push_back(std::move(packet));
            return announced.back()->request;
        }
        queue.push_back(std::move(packet));
        if (param && param->cb.send && one_in(3)) {
            Request *request = new_request(ep->worker, param);
            ep->worker->completions.push_back({request, UCS_OK, step_number});
            return request;
        }
        return nullptr;
    }

    static void put(void *self, ucp_ep_h ep, int window, uint32_t key)
    {
        Rank &rank = *static_cast<Rank *>(self);
        World &world = *rank.world;
        Connection &c = *ep->connection;
        if (ep->is_closed || !rank.has(ep->worker))
            world.violate("rank %d puts over an endpoint that it does not have", rank.number);
        world.check_locks(rank, ep->worker->vci, "puts");
        Packet packet;
        packet.kind = Packet::Put;
        packet.window = window;
        packet.key = key;
        const int other = 1 - ep->side;
        if (ep->is_lost)
            return;
        if (c.is_dead) {
            world.note_lost(packet, other, world.killed >= 0);
            return;
        }
        statistics.puts++;
        c.puts[static_cast<size_t>(ep->side)]++;
        c.to[static_cast<size_t>(other)].push_back(std::move(packet));
    }

    static ucs_status_ptr_t rank_send(void *self, ucp_ep_h ep, unsigned id, const void *header,
                                      size_t header_length, const void *data, size_t length,
                                      const ucp_request_param_t *param)
    {
        Rank &rank = *static_cast<Rank *>(self);
        // (A window asks for a key inside its own lock and that of VCI 0; all else of the
        // negotiation is a step.)
        MPIDI_ZC_path_message_t message{};
        if (id == MPIDI_ZC_AM_PATH)
            std::memcpy(&message, header, sizeof message);
        const bool is_step = id == MPIDI_ZC_AM_PATH && message.kind != MPIDI_ZC_TELL_WANTS;
        rank.world->check_locks(rank, is_step ? -1 : ep->worker->vci, "sends");
        return rank.world->send(ep, id, header, header_length, data, length, param);
    }

    void answer_bulk(const Announced &of, int to, Packet::Kind kind)
    {
        if (of.connection->is_dead) {
            if (killed < 0)
                violate("an announced message is fetched over a connection that is lost");
            return;
        }
        Packet packet;
        packet.kind = kind;
        packet.announced = const_cast<Announced *>(&of);
        of.connection->to[static_cast<size_t>(to)].push_back(std::move(packet));
    }

    static void fetch(void *self, void *descriptor)
    {
        const auto *what = static_cast<Announced *>(descriptor);
        const Rank &rank = *static_cast<Rank *>(self);
        rank.world->check_locks(rank, what->connection->worker[0]->vci, "fetches");
        rank.world->answer_bulk(*what, what->side, Packet::Fetch);
    }

    static void complete(Request *request, ucs_status_t status)
    {
        request->is_complete = true;
        if (request->callback)
            request->callback(request, status, request->user_data);
    }

    // Does the receiver of an announced message say when it has that?
    bool acks(const Connection &c) const { return options.acks && c.worker[0] != c.worker[1]; }

    void deliver(Rank &rank, Connection &c, int side)
    {
        // (Its fiber may never go on, so it keeps nothing on its stack that has to be freed.)
        Packet &packet = rank.handled;
        packet = std::move(c.to[static_cast<size_t>(side)].front());
        c.to[static_cast<size_t>(side)].pop_front();
        Announced *what = packet.announced;
        switch (packet.kind) {
        case Packet::Message:
            if (packet.is_path())
                say("rank %d has %s of %d", rank.number, name_of(packet.path().kind),
                    static_cast<int>(packet.path().sender));
            [[fallthrough]];
        case Packet::Announcement:
            rank.code->deliver(c.worker[static_cast<size_t>(side)]->vci, packet.id,
                               packet.header.data(), packet.header.size(),
                               packet.data.empty() ? "" : packet.data.data(), packet.data.size(),
                               what);
            break;
        case Packet::Fetch:
            answer_bulk(*what, 1 - what->side, Packet::Data);
            if (!acks(c))
                complete(what->request, UCS_OK);
            break;
        case Packet::Data:
            what->is_here = true;
            if (acks(c))
                answer_bulk(*what, what->side, Packet::Ack);
            else
                c.announced--;
            rank.code->fetched(what);
            break;
        case Packet::Ack:
            c.announced--;
            complete(what->request, UCS_OK);
            break;
        case Packet::Put:
            if (!rank.code->is_put(packet.window, packet.key))
                violate("rank %d gets a put to memory that has another key by now", rank.number);
            // (UCX sends the answer to a large get when it can.)
            c.answers[static_cast<size_t>(side)].push_back(step_number + below(40));
            break;
        case Packet::PutDone:
            c.puts[static_cast<size_t>(side)]--;
            break;
        case Packet::WireRequest:
        case Packet::WireReply:
        case Packet::WireDone:
            wire(c, static_cast<size_t>(side), packet.kind);
            break;
        }
    }

    static bool progress(void *self, int vci)
    {
        Rank &rank = *static_cast<Rank *>(self);
        World &world = *rank.world;
        world.check_locks(rank, vci, "makes progress");
        Worker &worker = *rank.workers[static_cast<size_t>(vci)];
        if (world.options.vcis > 1 && !world.options.round_robin) {
            // What is under way on a VCI may take longer than all that is told on the first one.
            if (vci > 0 && !world.is_quiet && world.one_in(50))
                worker.unseen_until = world.step_number +
                                      world.below(100 * static_cast<uint64_t>(world.options.ranks));
            if (world.one_in(3) || (!world.is_quiet && world.step_number < worker.unseen_until))
                return false;
        }
        world.progress(rank, worker);
        return true;
    }

    void progress(Rank &rank, Worker &worker)
    {
        for (size_t i = 0; i < worker.completions.size();) {
            const auto completion = worker.completions[i];
            const Connection *flushed = completion.request->flushes;
            if (completion.due > step_number || (flushed && !flushed->is_dead &&
                                                 (flushed->puts[completion.request->side] > 0 ||
                                                  !flushed->wired[completion.request->side]))) {
                i++;
                continue;
            }
            worker.completions.erase(worker.completions.begin() + static_cast<ptrdiff_t>(i));
            complete(completion.request, completion.status);
        }
        for (Connection *c : worker.connections) {
            for (size_t side = 0; side < 2; side++) {
                auto &answers = c->answers[side];
                while (c->worker[side] == &worker && !answers.empty() &&
                       answers.front() <= step_number) {
                    answers.pop_front();
                    if (!c->is_dead) {
                        c->to[1 - side].emplace_back();
                        c->to[1 - side].back().kind = Packet::PutDone;
                    }
                }
            }
        }
        const uint64_t nr = options.round_robin ? 1000 : below(4);
        for (uint64_t i = 0; i < nr; i++) {
            ready.clear();
            for (Connection *c : worker.connections) {
                for (int side = 0; side < 2; side++) {
                    if (c->worker[static_cast<size_t>(side)] == &worker &&
                        !c->to[static_cast<size_t>(side)].empty() && !stalls(*c))
                        ready.emplace_back(c, side);
                }
            }
            if (ready.empty())
                break;
            const auto [c, side] = ready[below(ready.size())];
            deliver(rank, *c, side);
        }
        bool are_dead = false;
        for (size_t i = 0; i < worker.connections.size(); i++) {
            Connection &c = *worker.connections[i];
            for (size_t side = 0; side < 2; side++) {
                if (c.worker[side] != &worker || !c.loss[side] || *c.loss[side] > step_number ||
                    !c.to[side].empty())
                    continue;
                Endpoint *ep = c.ep[side];
                are_dead = true;
                if (ep && !ep->is_lost) {
                    ep->is_lost = true;
                    say("rank %d loses its connection to worker %u", rank.number,
                        c.worker[1 - side] ? static_cast<unsigned>(c.worker[1 - side]->id) : 0);
                    if (ep->failed)
                        ep->failed(ep->argument, ep, UCS_ERR_CONNECTION_RESET);
                }
            }
        }
        if (are_dead)
            std::erase_if(worker.connections, [&](const Connection *c) {
                const size_t side = c->worker[0] == &worker ? 0 : 1;
                return c->is_dead && c->loss[side] && *c->loss[side] <= step_number &&
                       c->to[side].empty() && (!c->ep[side] || c->ep[side]->is_lost);
            });
    }

    static const zc_test_world_t calls;

    Options options;
    std::mt19937_64 random;
    uint64_t step_number = 0;
    bool is_quiet = false;
    int killed = -1;
    int failed_calls = 0, nr_sends = 0;
    std::string violation, job_end;
    std::vector<char> initial;
    std::vector<std::unique_ptr<Rank>> ranks;
    std::vector<Copy> copies;
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::unique_ptr<Connection>> connections;
    std::vector<std::unique_ptr<Endpoint>> endpoints;
    std::vector<std::unique_ptr<Request>> requests;
    std::vector<std::unique_ptr<Announced>> announced;
    std::map<std::tuple<uint64_t, uint64_t, unsigned>, Connection *> matched;
    std::vector<std::pair<Connection *, int>> ready;
};

const zc_test_world_t World::calls = {
    .allocate = allocate,
    .release = release,
    .fails = fails,
    .now_ns = now_ns,
    .abort = abort,
    .lock = lock,
    .unlock = unlock,
    .worker_open = worker_open,
    .worker_close = worker_close,
    .ep_create = rank_ep_create,
    .ep_close = ep_close,
    .ep_flush = ep_flush,
    .send = rank_send,
    .worker_flush = worker_flush,
    .request_status = request_status,
    .request_free = request_free,
    .fetch = fetch,
    .put = put,
    .progress = progress,
    .order = order,
    .answer = answer,
    .closed = closed,
    .received = received,
    .landed = landed,
    .program = program,
    .pause = pause,
};

// ---- random schedules ----

uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, nullptr, 10) : otherwise;
}

Options options_of(uint64_t seed)
{
    std::mt19937_64 random(seed * 7919);
    const auto below = [&](uint64_t n) { return static_cast<int>(random() % n); };
    Options o;
    o.seed = seed;
    o.ranks = 2 + std::min(below(7), below(7));
    o.nodes = std::array{1, 2, 8}[static_cast<size_t>(below(3))];
    o.bulk = std::array{ZC_TEST_BULK_WITH_ALL, ZC_TEST_BULK_APART, ZC_TEST_BULK_SHARES_FIRST,
                        ZC_TEST_BULK_SHARES_FIRST}[static_cast<size_t>(below(4))];
    o.acks = below(2) == 0;
    o.seconds = std::array{20, 20, 20, 3, 1}[static_cast<size_t>(below(5))];
    switch (below(8)) {
    case 0:
        o.fail_sends = 3 + below(40);
        break;
    case 1:
        o.fail_landing = 20 + below(100);
        o.fail_sends = below(2) * 30;
        break;
    case 2:
        o.fail_all = 50 + below(2000);
        break;
    default:
        break;
    }
    o.traffic = std::array{0, 5, 30, 60}[static_cast<size_t>(below(4))];
    o.late_losses = below(10) == 0;
    o.ports_again = below(4) == 0;
    o.slow_ranks = below(3) == 0;
    o.stops = below(6) == 0;
    o.active_steps = 200 + below(1500) + (o.stops ? 3000 : 0);
    o.between = std::array{5, 50, 300}[static_cast<size_t>(below(3))] * o.ranks;
    o.away = std::array{5, 50, 200}[static_cast<size_t>(below(3))] * o.ranks;
    o.group = below(2) == 0;
    o.copies = below(3) == 0;
    o.finalizes = below(3) == 0;
    o.hinders = below(3) == 0;
    o.vcis = std::array{1, 1, 2, ZC_TEST_VCIS}[static_cast<size_t>(below(4))];
    if (o.vcis > 1)
        o.seconds *= 2; // a rank looks at each VCI in two of three steps
    o.stalls = below(2) == 0;
    o.left_before = below(2) == 0;
    return o;
}

void report(const char *what, const Statistics &s)
{
    printf(
        "%s: %llu schedules, %llu steps; left %llu times, %llu of them while another was away, up "
        "to %d at a time; refused %llu times; stale copies refused %llu times; ended %llu times; "
        "%llu puts of UCX, "
        "%llu keys to memory that was registered anew; by other VCIs than the first, %llu messages "
        "came before BOUND, and %llu packets of credit; while a thread took all locks, others sent "
        "%llu messages, and had all before it %llu times; %llu steps of landing threads\n",
        what, static_cast<unsigned long long>(s.schedules),
        static_cast<unsigned long long>(s.steps), static_cast<unsigned long long>(s.left),
        static_cast<unsigned long long>(s.together), s.most,
        static_cast<unsigned long long>(s.refused), static_cast<unsigned long long>(s.stale),
        static_cast<unsigned long long>(s.ended), static_cast<unsigned long long>(s.puts),
        static_cast<unsigned long long>(s.keys), static_cast<unsigned long long>(s.early),
        static_cast<unsigned long long>(s.credits), static_cast<unsigned long long>(s.sent_between),
        static_cast<unsigned long long>(s.overtaken), static_cast<unsigned long long>(s.landing));
    if (getenv("ZC_PATH_VERBOSE")) {
        for (const auto &[why, nr] : s.why)
            printf("  refused: %s: %llu\n", why.c_str(), static_cast<unsigned long long>(nr));
        for (unsigned kind = 0; kind < s.lost.size(); kind++) {
            if (s.lost[kind] > 0)
                printf("  lost: %s: %llu\n", name_of(kind),
                       static_cast<unsigned long long>(s.lost[kind]));
        }
    }
}

void run_random(uint64_t first, uint64_t nr, bool kills)
{
    const uint64_t only = setting("ZC_PATH_SEED", 0);
    if (only) {
        first = only;
        nr = 1;
    }
    int wrong = 0;
    for (uint64_t seed = first;
         seed < first + nr && wrong < static_cast<int>(setting("ZC_PATH_FAILURES", 10)); seed++) {
        Options o = options_of(seed);
        o.trace = only != 0;
        if (kills) {
            o.kills = true;
            o.fail_all = o.fail_sends = o.fail_landing = 0;
            // A rank that has the port of the dead one would hide its death.
            o.copies = o.finalizes = o.late_losses = o.hinders = o.ports_again = o.stops = false;
        }
        World world(o);
        const std::string what = world.run();
        if (!what.empty()) {
            wrong++;
            ADD_FAILURE() << "ZC_PATH_SEED=" << seed << " (" << o.ranks << " ranks, " << o.vcis
                          << " VCIs): " << what;
            if (only)
                world.describe();
        }
    }
}

TEST(Path, RandomSchedules)
{
    statistics = {};
    run_random(1, setting("ZC_PATH_SCHEDULES", 3000), false);
    report("random", statistics);
    if (statistics.schedules < 1000)
        return;
    EXPECT_GT(statistics.together, statistics.schedules);
    EXPECT_GT(statistics.introduced, statistics.schedules);
    EXPECT_GT(statistics.stale, statistics.schedules / 10);
    EXPECT_GT(statistics.refused, statistics.schedules);
    EXPECT_GT(statistics.puts, 10 * statistics.schedules);
    EXPECT_GT(statistics.keys, 2 * statistics.schedules);
    EXPECT_GE(statistics.most, 5);
    EXPECT_GT(statistics.early, 0U);
    EXPECT_GT(statistics.credits, statistics.schedules);
    EXPECT_GT(statistics.sent_between, statistics.schedules);
    EXPECT_GT(statistics.overtaken, statistics.schedules);
    EXPECT_GT(statistics.landing, statistics.schedules);
    // The last messages to or of a rank that is gone: without them a schedule says little.
    EXPECT_GT(statistics.lost[MPIDI_ZC_TELL_QUIET], 0U);
    EXPECT_GT(statistics.lost[MPIDI_ZC_TELL_RESUME], 0U);
}

TEST(Path, KilledWhileAnotherIsAway)
{
    statistics = {};
    run_random(1, setting("ZC_PATH_SCHEDULES", 1000), true);
    report("killed", statistics);
    if (statistics.schedules >= 1000) {
        EXPECT_GT(statistics.killed, statistics.schedules / 2);
    }
}

// ---- directed schedules ----

class PathScenario : public testing::Test {
  protected:
    static Options quiet(int ranks, uint64_t seed)
    {
        Options o;
        o.seed = seed;
        o.ranks = ranks;
        o.vcis = 1 + static_cast<int>(seed / 4 % ZC_TEST_VCIS);
        o.random_orders = false;
        o.round_robin = seed % 3 == 0;
        o.bulk = std::array{ZC_TEST_BULK_APART, ZC_TEST_BULK_WITH_ALL, ZC_TEST_BULK_SHARES_FIRST,
                            ZC_TEST_BULK_WITH_ALL}[seed % 4];
        o.acks = seed % 5 == 0;
        o.trace = getenv("ZC_PATH_TRACE") != nullptr;
        return o;
    }

    // Ends the schedule, and says what it was if it went wrong.
    template <class... Numbers>
    void end(World &world, const char *format, int ranks, Numbers... numbers)
    {
        bool went_well = world.settle();
        world.can_leave(nr++ % ranks);
        went_well = went_well && world.goes_on();
        if (world.wrong().empty() && (went_well || !world.ended().empty()))
            return;
        char text[200];
        snprintf(text, sizeof text, format, ranks, numbers...);
        ADD_FAILURE() << text << ": " << world.wrong() << world.ended();
        if (++nr_wrong == 10)
            throw std::runtime_error("there are too many");
    }

    void await(World &world, int rank, int state)
    {
        const uint64_t limit = world.now() + 60000;
        while (world[rank].state != state && world.goes_on() && world.now() < limit)
            world.steps(1);
        EXPECT_TRUE(world[rank].state == state || !world.goes_on()) << world[rank].why;
    }

    int nr = 0, nr_wrong = 0;
};

// What a rank has done on another VCI, for the first time, is under way when it, or the other,
// leaves: its connections may be slower than that of the first VCI.
TEST_F(PathScenario, FirstContactOfAnotherVci)
{
    for (int ranks = 2; ranks <= 3; ranks++) {
        for (unsigned what = 0; what < 12; what++) {
            for (int after = 0; after < 60; after++) {
                const int actor = static_cast<int>(what & 1),
                          mover = static_cast<int>(what >> 1 & 1);
                const auto act = std::array{Rank::Announce, Rank::PutTo, Rank::Credit}[what >> 2];
                Options o = quiet(ranks, static_cast<uint64_t>(after) + 60 * what + 1);
                o.vcis = 2 + after % 2;
                o.traffic = 0;
                o.stalls = true;
                World world(o);
                for (int time = 0; time < 3; time++) {
                    if (act == Rank::Credit) { // where there is a connection
                        world.act(actor, {Rank::Send, 1 - actor, 1});
                        world.steps(20);
                    }
                    world.act(actor, {act, 1 - actor, 1});
                    world.steps(after % 12);
                    world.leave(mover);
                    await(world, mover, Rank::Away);
                    world.come_back(mover);
                    await(world, mover, Rank::Idle);
                }
                end(world, "%d ranks, %u, after %d", ranks, what, after);
            }
        }
    }
}

// The first key to memory of a rank that has left before the others knew it is of a later
// incarnation than they know of, and is as good as any. When it has left once more there is
// another.
TEST_F(PathScenario, KeyOfOneThatHasLeftBefore)
{
    for (int ranks = 2; ranks <= 3; ranks++) {
        for (int window = 0; window < ZC_TEST_WINDOWS; window++) {
            for (int mover = 0; mover < 2; mover++) {
                for (uint64_t seed = 1; seed <= 12; seed++) {
                    Options o = quiet(ranks, seed);
                    o.traffic = 0;
                    o.left_before = true;
                    World world(o);
                    const auto is_put = [&] {
                        const auto before = statistics.puts;
                        for (int i = 0; i < 20 && statistics.puts == before; i++) {
                            world.act(0, {Rank::PutTo, 1, window});
                            world.steps(10);
                        }
                        return statistics.puts > before;
                    };
                    EXPECT_TRUE(is_put()) << ranks << " ranks, seed " << seed;
                    world.leave(mover);
                    await(world, mover, Rank::Away);
                    world.come_back(mover);
                    await(world, mover, Rank::Idle);
                    EXPECT_TRUE(is_put()) << ranks << " ranks, seed " << seed << ", again";
                    end(world, "%d ranks, window %d, %d leaves", ranks, window, mover);
                }
            }
        }
    }
}

// The orders meet each other at all times: PAUSE that crosses PAUSE, and a rank that joins in each
// state.
TEST_F(PathScenario, TwoMovers)
{
    for (int ranks = 2; ranks <= 4; ranks++) {
        for (int a = 0; a < ranks; a++) {
            for (int b = 0; b < ranks; b++) {
                for (int after = 0; a != b && after < 30; after++) {
                    World world(quiet(ranks, static_cast<uint64_t>(after) + 1));
                    world.steps(5);
                    world.leave(a);
                    world.steps(after);
                    world.leave(b);
                    world.steps(40);
                    end(world, "%d ranks, %d and after %d %d", ranks, a, after, b);
                    if (world[a].left + world[b].left == 0)
                        ADD_FAILURE() << a << ", " << b << ", " << after << ": neither has left";
                }
            }
        }
    }
}

// One of the two stays after all, or both do, at all times; then they leave again.
TEST_F(PathScenario, MoverStaysAndLeavesAgain)
{
    for (int a = 0; a < 3; a++) {
        for (int b = 0; b < 3; b++) {
            for (int after = 0; a != b && after < 12; after += 3) {
                for (int stays = 0; stays < 24; stays += 2) {
                    for (int again = 0; again < 3; again++) {
                        for (unsigned who = 1; who <= 3; who++) {
                            const auto seed =
                                static_cast<uint64_t>(1 + stays + 100 * after + 10000 * again);
                            World world(quiet(3, seed));
                            world.leave(a);
                            world.steps(after);
                            world.leave(b);
                            world.steps(stays);
                            for (const int rank : {a, b}) {
                                const bool does = who >> (rank == b) & 1;
                                if (does && world[rank].state == Rank::Asked)
                                    world.hinder(rank, true);
                            }
                            world.steps(2 + 4 * again);
                            for (const int rank : {a, b}) {
                                world.hinder(rank, false);
                                if (world[rank].state == Rank::Idle)
                                    world.leave(rank);
                            }
                            world.steps(20);
                            end(world,
                                "%d ranks, %d and after %d %d; after %d those of %u stay, for %d",
                                3, a, after, b, stays, who, again);
                        }
                    }
                }
            }
        }
    }
}

// One comes back while another one begins to leave, is about to be away, or is; and a third, too.
TEST_F(PathScenario, MoverComesBackWhileAnotherLeaves)
{
    for (int ranks = 2; ranks <= 4; ranks++) {
        for (int a = 0; a < ranks; a++) {
            for (int b = 0; b < ranks; b++) {
                for (int after = 0; a != b && after < 40; after++) {
                    World world(quiet(ranks, static_cast<uint64_t>(after) + 7));
                    world.leave(a);
                    world.steps(60);
                    const int c = (std::max(a, b) + 1) % ranks;
                    const bool begins = after % 2 == 0;
                    if (begins)
                        world.leave(b);
                    else
                        world.come_back(a);
                    world.steps(after / 2);
                    if (begins)
                        world.come_back(a);
                    else
                        world.leave(b);
                    if (c != a && c != b && after % 3 == 0)
                        world.leave(c);
                    world.steps(50);
                    end(world, "%d ranks, %d comes back while %d leaves, %d", ranks, a, b, after);
                }
            }
        }
    }
}

// Ranks that know of each other are all away at a time.
TEST_F(PathScenario, GroupLeavesTogether)
{
    for (int ranks = 2; ranks <= ZC_TEST_RANKS; ranks++) {
        for (unsigned group = 1; group<(1U << ranks) - 1; group += ranks> 5 ? 5 : 1) {
            Options o = quiet(ranks, group);
            o.nodes = 1 + static_cast<int>(group % 3);
            World world(o);
            int size = 0;
            for (int rank = 0; rank < ranks; rank++) {
                if (group >> rank & 1) {
                    size++;
                    world.leave(rank, group);
                    world.steps(static_cast<int>(group % 7));
                }
            }
            for (int i = 0; i < 1000 && world.nr_away() < size && world.goes_on(); i++)
                world.steps(1);
            EXPECT_EQ(world.nr_away(), size) << ranks << " ranks, group " << group;
            end(world, "%d ranks, group %x", ranks, group);
        }
    }
}

// Of all ranks, one stays.
TEST_F(PathScenario, AllAreToldAtOnce)
{
    for (int ranks = 2; ranks <= ZC_TEST_RANKS; ranks++) {
        for (uint64_t seed = 1; seed <= 60; seed++) {
            World world(quiet(ranks, seed));
            for (int rank = 0; rank < ranks; rank++) {
                world.leave(rank);
                world.steps(static_cast<int>(seed % 4));
            }
            const auto asked = [&] {
                for (int rank = 0; rank < ranks; rank++) {
                    if (world[rank].state == Rank::Asked)
                        return true;
                }
                return false;
            };
            while (asked() && world.goes_on())
                world.steps(1);
            EXPECT_GE(world.nr_away(), 1) << ranks << " ranks, seed " << seed;
            EXPECT_LT(world.nr_away(), ranks);
            end(world, "%d ranks, seed %d", ranks, static_cast<int>(seed));
        }
    }
}

// Each control message, one after the other, finds no memory.
TEST_F(PathScenario, NoMemoryForAMessage)
{
    int ended = 0;
    for (int ranks = 2; ranks <= 4; ranks++) {
        for (int after = 0; after < 16; after += 3) {
            for (int stays = 0; stays < 2; stays++) {
                bool has_failed = true;
                for (int nth = 1; has_failed; nth++) {
                    Options o = quiet(ranks, static_cast<uint64_t>(after + stays) + 1);
                    o.fail_nth = nth;
                    World world(o);
                    world.leave(0);
                    world.steps(after);
                    world.leave(1);
                    world.steps(6);
                    world.hinder(0, stays == 1);
                    world.steps(30);
                    world.hinder(0, false);
                    world.come_back(0);
                    world.steps(10);
                    world.come_back(1);
                    if (world[0].state == Rank::Idle)
                        world.leave(0);
                    world.steps(30);
                    end(world, "%d ranks, after %d, %d, message %d", ranks, after, stays, nth);
                    has_failed = world.nr_failed() > 0;
                    ended += !world.ended().empty();
                }
            }
        }
    }
    EXPECT_GT(nr, 500);
    EXPECT_LT(ended, nr / 5);
}

} // namespace

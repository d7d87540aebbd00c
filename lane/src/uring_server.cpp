/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_context.h"
#include "pieces.h"

#include <algorithm>
#include <cerrno>
#include <liburing.h>
#include <new>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace zcl {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr unsigned kEntries = 256;
constexpr unsigned kCompletions = 4096;
constexpr std::size_t kMostOps = 32;                     /* of a chain */
constexpr std::size_t kMostPerOp = std::size_t{1} << 30; /* lengths are 32 bits there */

/*
 * Names of operations:  | kind 4 | place in the chain 8 | slot of the lane 20 | generation 32 |
 * The generation tells a chain from the one before.
 */
enum class kind : std::uint64_t { none, receive, send, listener };

std::uint64_t name_of(kind k, std::size_t place, std::uint32_t slot, std::uint32_t generation)
{
    return static_cast<std::uint64_t>(k) << 60 | static_cast<std::uint64_t>(place) << 52 |
           static_cast<std::uint64_t>(slot) << 32 | generation;
}

struct op {
    std::uint32_t len;
    std::int32_t result;
    bool done;
};

/* One sendmsg(2) with all that is to be sent. */
struct outgoing {
    msghdr message{};
    iovec pieces[outbound::kMostPieces];

    void plan(outbound &out)
    {
        message.msg_iov = pieces;
        message.msg_iovlen = static_cast<std::size_t>(out.plan(pieces));
    }
};

struct by_uring final : served {
    std::uint32_t slot = 0;
    std::uint32_t generation = 0;
    std::vector<op> chain;   /* receives the kernel was given, in order */
    std::size_t nr_left = 0; /* of these, not done */
    bool held = false;       /* no place for what comes */
    bool by_caller = false;  /* the waiting caller reads it without the ring's help */
    bool dirty = false;      /* something is done that has not been looked at */
    bool sending = false, sent = false;
    std::uint32_t send_generation = 0;
    std::int32_t send_result = 0;
    std::unique_ptr<outgoing> out; /* what the kernel has */
};

by_uring &mine(zcl_lane &lane)
{
    return *static_cast<by_uring *>(lane.served.get());
}

bool again(int error)
{
    return error == EAGAIN || error == EINTR || error == ECANCELED;
}

/**
 *              plan, arm                    serve(): any op of it is done, or the plan changes
 *    no chain ──────────▶ with the kernel ─────────────────────────────────▶ taken back ──▶ ...
 *
 * A chain is looked at only when all of it has come back, since the kernel may be
 * writing into landing memory until then. What the kernel had not done it gives back at once.
 */
class uring_server final : public server {
  public:
    explicit uring_server(zcl_context &context) : context_(context) { ring_.ring_fd = -1; }
    ~uring_server() override;

    int start() override;
    void add(zcl_lane &lane) override;
    void send(zcl_lane &lane) override;
    void receive(zcl_lane &lane) override;
    void withdraw(zcl_lane &lane) override;
    void serve() override;
    int wait(std::unique_lock<std::mutex> &held, std::int64_t timeout_ns) override;
    void happened() override;

  private:
    int try_out();
    io_uring_sqe *get_sqe();
    void submit();
    void drain();
    void note(const io_uring_cqe &cqe);
    void cancel(std::uint64_t name);
    void take_back_receives(zcl_lane &lane);
    void take_back_send(zcl_lane &lane);
    void arm_receives(zcl_lane &lane);
    void arm_send(zcl_lane &lane);
    void listen();
    void settle(zcl_lane &lane);
    void settle_all();
    void make_slots();
    void mark(zcl_lane &lane);
    void consume(zcl_lane &lane);
    bool read_by_caller(std::unique_lock<std::mutex> &held, std::int64_t timeout_ns);
    enum class outcome { more, later, no_place };
    outcome read(zcl_lane &lane);
    std::int64_t until_deadline(std::int64_t timeout_ns);

    zcl_context &context_;
    io_uring ring_{};
    std::vector<zcl_lane *> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::vector<zcl_lane *> dirty_;
    std::size_t nr_held_ = 0;
    zcl_lane *hot_ = nullptr; /* the last one with something to receive */
    int nr_waiting_ = 0;
    bool listening_ = false;
    bool knocked_ = false;
};

uring_server::~uring_server()
{
    if (ring_.ring_fd < 0)
        return;
    /* A ring lets go of its files some time after its end: peers could still connect. */
    while (listening_)
        cancel(name_of(kind::listener, 0, 0, 0));
    io_uring_queue_exit(&ring_);
}

int uring_server::start()
{
    io_uring_params p{};
    p.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    p.cq_entries = kCompletions;
    const int error = io_uring_queue_init_params(kEntries, &ring_, &p);
    if (error < 0) {
        ring_.ring_fd = -1;
        return error;
    }
    constexpr unsigned needed = IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE |
                                IORING_FEAT_FAST_POLL | IORING_FEAT_EXT_ARG;
    if ((p.features & needed) != needed)
        return -EOPNOTSUPP;
    io_uring_ring_dontfork(&ring_);
    const int able = try_out();
    if (able == 0) {
        listen();
        submit();
    }
    return able;
}

/* A header, and landing memory of which a part is filled: does the kernel tell how much? */
int uring_server::try_out()
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    owned_fd ours(pair[0]), theirs(pair[1]);
    char head[4], tail[64];
    io_uring_sqe *sqe = get_sqe();
    io_uring_prep_recv(sqe, ours.get(), head, sizeof head, MSG_WAITALL);
    sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
    sqe->flags |= IOSQE_IO_LINK;
    sqe->user_data = 1;
    sqe = get_sqe();
    io_uring_prep_recv(sqe, ours.get(), tail, sizeof tail, MSG_WAITALL);
    sqe->user_data = 2;
    submit();
    if (::send(theirs.get(), "headtail", 8, 0) != 8)
        return -errno;
    int head_result = 0, tail_result = 0;
    /* Two more receives than there is data for: one must be called off, and that may take a
     * second attempt if it is being carried out just then. */
    for (int done = 0, tries = 0; done < 2 && tries < 1000; tries++) {
        __kernel_timespec limit{1, 0};
        io_uring_cqe *cqe = nullptr;
        if (io_uring_wait_cqe_timeout(&ring_, &cqe, &limit) < 0)
            break;
        const std::uint64_t which = cqe->user_data;
        (which == 1 ? head_result : tail_result) = which == 3 ? tail_result : cqe->res;
        io_uring_cqe_seen(&ring_, cqe);
        done += which != 3;
        if (done == 1) {
            sqe = get_sqe();
            io_uring_prep_cancel64(sqe, 2, 0);
            sqe->user_data = 3;
            submit();
        }
    }
    if (head_result != 4 || tail_result != 4)
        return -EOPNOTSUPP;
    return 0;
}

io_uring_sqe *uring_server::get_sqe()
{
    io_uring_sqe *sqe = io_uring_get_sqe(&ring_);
    while (!sqe) {
        submit();
        sqe = io_uring_get_sqe(&ring_);
    }
    return sqe;
}

/* -EBUSY, -EAGAIN: completions are in the way, or memory is short: both pass. */
void uring_server::submit()
{
    while (io_uring_sq_ready(&ring_) > 0) {
        const int n = io_uring_submit(&ring_);
        if (n < 0 && n != -EINTR)
            drain();
    }
}

void uring_server::mark(zcl_lane &lane)
{
    if (mine(lane).dirty)
        return;
    mine(lane).dirty = true;
    dirty_.push_back(&lane);
}

void uring_server::note(const io_uring_cqe &cqe)
{
    const std::uint64_t name = cqe.user_data;
    const auto what = static_cast<kind>(name >> 60);
    if (what == kind::listener) {
        listening_ = false;
        knocked_ = true;
        return;
    }
    const std::uint32_t slot = name >> 32 & 0xfffff;
    if (what == kind::none || slot >= slots_.size() || !slots_[slot])
        return;
    zcl_lane &lane = *slots_[slot];
    by_uring &m = mine(lane);
    const auto generation = static_cast<std::uint32_t>(name);
    const std::size_t place = name >> 52 & 0xff;
    if (what == kind::receive && generation == m.generation && place < m.chain.size()) {
        m.chain[place].done = true;
        m.chain[place].result = cqe.res;
        m.nr_left--;
    } else if (what == kind::send && generation == m.send_generation) {
        m.sent = true;
        m.send_result = cqe.res;
    }
    mark(lane);
}

void uring_server::drain()
{
    io_uring_cqe *found[64];
    for (;;) {
        const unsigned nr = io_uring_peek_batch_cqe(&ring_, found, std::size(found));
        if (nr == 0)
            return;
        for (unsigned i = 0; i < nr; i++)
            note(*found[i]);
        io_uring_cq_advance(&ring_, nr);
    }
}

void uring_server::cancel(std::uint64_t name)
{
    io_uring_sqe *sqe = get_sqe();
    io_uring_prep_cancel64(sqe, name, 0);
    sqe->user_data = name_of(kind::none, 0, 0, 0);
    io_uring_submit_and_wait(&ring_, 1);
    drain();
}

void uring_server::take_back_receives(zcl_lane &lane)
{
    by_uring &m = mine(lane);
    if (m.nr_left > 0)
        context_.stats.taken_back++;
    while (m.nr_left > 0) {
        std::size_t first = 0;
        while (m.chain[first].done)
            first++;
        cancel(name_of(kind::receive, first, m.slot, m.generation));
    }
}

void uring_server::take_back_send(zcl_lane &lane)
{
    by_uring &m = mine(lane);
    while (m.sending && !m.sent)
        cancel(name_of(kind::send, 0, m.slot, m.send_generation));
}

/* All that lanes' ends need is taken here, where want of memory only refuses a new lane. */
void uring_server::make_slots()
{
    if (slots_.size() < slots_.capacity())
        return;
    const std::size_t nr = 2 * slots_.size() + 8;
    dirty_.reserve(nr);
    free_slots_.reserve(nr);
    slots_.reserve(nr);
}

void uring_server::add(zcl_lane &lane)
{
    auto own = std::make_unique<by_uring>();
    own->chain.reserve(kMostOps);
    make_slots();
    if (free_slots_.empty()) {
        own->slot = static_cast<std::uint32_t>(slots_.size());
        slots_.push_back(&lane);
    } else {
        own->slot = free_slots_.back();
        free_slots_.pop_back();
        slots_[own->slot] = &lane;
    }
    lane.served = std::move(own);
    arm_send(lane);
    if (lane.state != zcl_lane_state::broken)
        arm_receives(lane);
    submit();
}

void uring_server::arm_receives(zcl_lane &lane)
{
    by_uring &m = mine(lane);
    if (m.nr_left > 0 || m.by_caller)
        return;
    const inbound::spans *found = context_.plan(lane, context_.share());
    if (!found)
        return;
    const inbound::spans &plan = *found;
    nr_held_ -= m.held;
    m.held = plan.empty();
    nr_held_ += m.held;
    m.chain.clear();
    m.generation++;
    if (m.held) {
        context_.stats.held++;
        return;
    }
    if (io_uring_sq_space_left(&ring_) < kMostOps)
        submit();
    io_uring_sqe *sqe = nullptr;
    for (const inbound::span &s : plan) {
        for (std::size_t at = 0; at < s.len && m.chain.size() < kMostOps; at += kMostPerOp) {
            const auto len = static_cast<std::uint32_t>(std::min(s.len - at, kMostPerOp));
            if (sqe)
                sqe->flags |= IOSQE_IO_LINK;
            sqe = get_sqe();
            io_uring_prep_recv(sqe, lane.fd.get(), s.at + at, len, MSG_WAITALL);
            /* The others come to their turn when data is there. */
            if (m.chain.empty())
                sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
            sqe->user_data = name_of(kind::receive, m.chain.size(), m.slot, m.generation);
            m.chain.push_back({len, 0, false});
        }
    }
    m.nr_left = m.chain.size();
    context_.stats.armed++;
}

void uring_server::arm_send(zcl_lane &lane)
{
    by_uring &m = mine(lane);
    if (m.sending || lane.out.empty())
        return;
    outgoing now;
    for (std::size_t sent = 0; !lane.out.empty() && sent < outbound::kMostAtOnce;) {
        now.plan(lane.out);
        const ssize_t n = sendmsg(lane.fd.get(), &now.message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            context_.send_failed(lane, -errno);
            return;
        }
        if (n < 0)
            break;
        context_.sent(lane, static_cast<std::size_t>(n));
        sent += static_cast<std::size_t>(n);
    }
    if (lane.out.empty()) {
        m.out.reset();
        return;
    }
    if (!m.out)
        m.out.reset(new (std::nothrow) outgoing);
    if (!m.out) {
        context_.fail(lane, -ENOMEM);
        return;
    }
    m.out->plan(lane.out);
    io_uring_sqe *sqe = get_sqe();
    io_uring_prep_sendmsg(sqe, lane.fd.get(), &m.out->message, MSG_WAITALL | MSG_NOSIGNAL);
    sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
    m.send_generation++;
    sqe->user_data = name_of(kind::send, 0, m.slot, m.send_generation);
    m.sending = true;
    m.sent = false;
}

void uring_server::listen()
{
    if (listening_ || !context_.accepting())
        return;
    io_uring_sqe *sqe = get_sqe();
    io_uring_prep_poll_add(sqe, context_.listener.get(), POLLIN);
    sqe->user_data = name_of(kind::listener, 0, 0, 0);
    listening_ = true;
}

void uring_server::send(zcl_lane &lane)
{
    by_uring &m = mine(lane);
    if (m.sending) {
        /* One sendmsg(2) at a time keeps the order: this one joins what is left. */
        take_back_send(lane);
        settle(lane);
    } else {
        arm_send(lane);
    }
    settle_all();
    submit();
}

void uring_server::receive(zcl_lane &lane)
{
    hot_ = &lane;
    take_back_receives(lane);
    settle(lane);
    settle_all();
    submit();
}

void uring_server::withdraw(zcl_lane &lane)
{
    by_uring &m = mine(lane);
    submit();
    take_back_receives(lane);
    take_back_send(lane);
    /* The cause, where receiving only found the connection gone. */
    if (m.sending && m.send_result < 0 && !again(-m.send_result) && !lane.send_error)
        lane.send_error = m.send_result;
    nr_held_ -= m.held;
    m.held = m.by_caller = false;
    if (hot_ == &lane)
        hot_ = nullptr;
    std::erase(dirty_, &lane);
    if (slots_[m.slot] == &lane) {
        slots_[m.slot] = nullptr;
        free_slots_.push_back(m.slot);
    }
}

/* Takes the chain back, and looks how far it came. */
void uring_server::consume(zcl_lane &lane)
{
    by_uring &m = mine(lane);
    take_back_receives(lane);
    /* It came dirty by that alone, unless what it sends was done meanwhile. */
    if (!m.sending || !m.sent) {
        m.dirty = false;
        std::erase(dirty_, &lane);
    }
    ssize_t came = 0;
    int error = ECANCELED;
    bool ended = false;
    for (const op &o : m.chain) {
        if (o.result > 0)
            came += o.result;
        else if (o.result == 0)
            ended = true;
        else
            error = -o.result;
        if (o.result != static_cast<std::int32_t>(o.len))
            break;
    }
    m.chain.clear();
    if (came > 0) {
        hot_ = &lane;
        if (!context_.received(lane, came, 0))
            return;
    }
    if (ended)
        context_.received(lane, 0, 0);
    else if (!again(error))
        context_.received(lane, -1, error);
}

/* Looks at what is done, and gives the kernel what comes next. */
void uring_server::settle(zcl_lane &lane)
{
    by_uring &m = mine(lane);
    m.dirty = false;
    std::erase(dirty_, &lane);
    if (m.sending && m.sent) {
        m.sending = false;
        if (m.send_result >= 0)
            context_.sent(lane, static_cast<std::size_t>(m.send_result));
        else if (!again(-m.send_result))
            context_.send_failed(lane, m.send_result);
    }
    if (std::any_of(m.chain.begin(), m.chain.end(), [](const op &o) { return o.done; }))
        consume(lane);
    if (lane.state == zcl_lane_state::broken)
        return;
    arm_send(lane);
    if (lane.state != zcl_lane_state::broken)
        arm_receives(lane);
}

/* Taking something back brings whatever else is done, of any lane. */
void uring_server::settle_all()
{
    while (!dirty_.empty())
        settle(*dirty_.back());
}

void uring_server::serve()
{
    drain();
    if (knocked_) {
        knocked_ = false;
        context_.accept_all();
    }
    if (nr_held_ > 0)
        for (auto &lane : context_.lanes)
            if (lane->state != zcl_lane_state::broken && mine(*lane).held)
                mark(*lane);
    settle_all();
    context_.check_deadlines();
    context_.sweep();
    listen();
    submit();
}

std::int64_t uring_server::until_deadline(std::int64_t timeout_ns)
{
    const auto next = context_.check_deadlines();
    if (next == clock::time_point::max())
        return timeout_ns;
    return std::clamp<std::int64_t>(std::chrono::nanoseconds(next - clock::now()).count(), 0,
                                    timeout_ns);
}

uring_server::outcome uring_server::read(zcl_lane &lane)
{
    const inbound::spans *plan = context_.plan(lane, 0);
    if (!plan)
        return outcome::later;
    pieces to(*plan);
    if (to.nr == 0)
        return outcome::no_place;
    const ssize_t n = recvmsg(lane.fd.get(), &to.message, MSG_DONTWAIT);
    const bool all = context_.received(lane, n, errno) && static_cast<std::size_t>(n) == to.len;
    return all ? outcome::more : outcome::later;
}

/*
 * A caller that waits for a lane of which more is certain to come reads by itself: that is
 * cheaper than to be interrupted at it. False: there is no such lane, or no place for what comes.
 */
bool uring_server::read_by_caller(std::unique_lock<std::mutex> &held, std::int64_t timeout_ns)
{
    zcl_lane *lane = hot_;
    if (!lane || mine(*lane).by_caller || mine(*lane).held || !lane->in.awaited())
        return false;
    consume(*lane);
    if (lane->state == zcl_lane_state::broken)
        return true;
    const auto end = clock::now() + std::chrono::nanoseconds(timeout_ns);
    const std::uint32_t slot = mine(*lane).slot;
    pollfd either[2] = {{lane->fd.get(), POLLIN, 0}, {ring_.ring_fd, POLLIN, 0}};
    mine(*lane).by_caller = true;
    /* The lane is gone, or another has its slot, if by_caller is not set any more. */
    auto still = [&] { return slots_[slot] == lane && mine(*lane).by_caller; };
    auto next = outcome::more;
    while (context_.events.empty() && dirty_.empty() && still() && lane->in.awaited()) {
        next = read(*lane);
        if (next == outcome::no_place)
            break;
        if (next == outcome::more)
            continue;
        const std::int64_t left = std::chrono::nanoseconds(end - clock::now()).count();
        if (!context_.events.empty() || !still() || io_uring_cq_ready(&ring_) > 0 || left <= 0)
            break;
        const timespec limit{left / kSecond, left % kSecond};
        nr_waiting_++;
        held.unlock();
        const int n = ppoll(either, 2, &limit, nullptr);
        held.lock();
        nr_waiting_--;
        if (n <= 0 || either[1].revents)
            break;
    }
    if (still()) {
        mine(*lane).by_caller = false;
        arm_send(*lane);
        if (lane->state != zcl_lane_state::broken)
            arm_receives(*lane);
    }
    serve();
    return next != outcome::no_place;
}

int uring_server::wait(std::unique_lock<std::mutex> &held, std::int64_t timeout_ns)
{
    timeout_ns = until_deadline(timeout_ns);
    if (read_by_caller(held, timeout_ns))
        return 0;
    __kernel_timespec limit{timeout_ns / kSecond, timeout_ns % kSecond};
    io_uring_getevents_arg arg{};
    arg.ts = reinterpret_cast<std::uintptr_t>(&limit);
    int n = 0;
    if (io_uring_cq_ready(&ring_) == 0 && context_.events.empty() && dirty_.empty()) {
        nr_waiting_++;
        held.unlock();
        n = io_uring_enter2(static_cast<unsigned>(ring_.ring_fd), 0, 1,
                            IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                            reinterpret_cast<sigset_t *>(&arg), sizeof arg);
        held.lock();
        nr_waiting_--;
    }
    serve();
    return n == -EINTR && context_.events.empty() ? -EINTR : 0;
}

/* An event that no completion has brought: a thread that waits for one is asleep. */
void uring_server::happened()
{
    if (nr_waiting_ == 0)
        return;
    io_uring_sqe *sqe = get_sqe();
    io_uring_prep_nop(sqe);
    sqe->user_data = name_of(kind::none, 0, 0, 0);
    submit();
}

} // namespace

std::unique_ptr<server> make_uring_server(zcl_context &context)
{
    return std::make_unique<uring_server>(context);
}

} // namespace zcl

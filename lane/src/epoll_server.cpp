/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_context.h"
#include "pieces.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <unordered_map>

namespace zcl {
namespace {

/* What one look at a lane reads at most, before others have their turn; and the same of a caller,
 * which has other work to do. */
constexpr int kReadsPerTurn = 8;
constexpr std::size_t kMostOfCaller = std::size_t{1} << 20;
constexpr int kMostAtOnce = 64; /* descriptors */

/* Names of descriptors in epoll; lanes count from here. */
enum : std::uint64_t { kWakeName, kListenerName, kFirstLane };

struct by_epoll final : served {
    std::uint64_t serial = 0;
    std::uint32_t interest = 0; /* as epoll knows it */
    bool watched = false;
    bool sending = false; /* the socket is full */
    bool held = false;    /* no place for what comes */
    bool reading = false; /* recvmsg(2) without the lock: the memory may not be taken away */
};

by_epoll &mine(zcl_lane &lane)
{
    return *static_cast<by_epoll *>(lane.served.get());
}

bool again(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

class epoll_server final : public server {
  public:
    epoll_server(zcl_context &context, bool own_thread) : context_(context), own_thread_(own_thread)
    {
    }

    int start() override;
    void stop() override;
    void add(zcl_lane &lane) override;
    void send(zcl_lane &lane) override;
    void receive(zcl_lane &lane) override;
    void withdraw(zcl_lane &lane) override;
    void serve() override;
    int wait(std::unique_lock<std::mutex> &held, std::int64_t timeout_ns) override;
    void happened() override { happened_.notify_all(); }
    int descriptor() const override { return own_thread_ ? -EOPNOTSUPP : epoll_.get(); }

  private:
    void run();
    int prepare();
    int look(std::unique_lock<std::mutex> *held, int timeout_ms);
    void turn(zcl_lane &lane, std::unique_lock<std::mutex> *held);
    void write(zcl_lane &lane);
    bool read(zcl_lane &lane, std::unique_lock<std::mutex> *held);
    void watch(zcl_lane &lane);
    void wake();

    zcl_context &context_;
    const bool own_thread_;
    owned_fd epoll_, wake_;
    std::unordered_map<std::uint64_t, zcl_lane *> lanes_;
    std::uint64_t next_serial_ = kFirstLane;
    std::size_t nr_held_ = 0;
    bool listening_ = false;
    bool stop_ = false;
    std::condition_variable happened_;
    std::condition_variable_any read_done_;
    std::thread thread_;
};

int epoll_server::start()
{
    epoll_ = owned_fd(epoll_create1(EPOLL_CLOEXEC));
    wake_ = owned_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event on_wake{EPOLLIN, {.u64 = kWakeName}};
    if (epoll_.get() < 0 || wake_.get() < 0 ||
        epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &on_wake) < 0)
        return -errno;
    if (!own_thread_) {
        prepare();
        return 0;
    }
    /* Signals are the application's. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    try {
        thread_ = std::thread([this] { run(); });
        pthread_setname_np(thread_.native_handle(), "zcl-lanes");
    } catch (const std::system_error &e) {
        error = -e.code().value();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return error;
}

void epoll_server::stop()
{
    if (!thread_.joinable())
        return;
    {
        std::lock_guard<std::mutex> guard(context_.lock);
        stop_ = true;
    }
    wake();
    thread_.join();
}

void epoll_server::add(zcl_lane &lane)
{
    auto own = std::make_unique<by_epoll>();
    own->serial = next_serial_;
    lanes_.emplace(own->serial, &lane);
    next_serial_++;
    lane.served = std::move(own);
    write(lane);
    if (lane.state == zcl_lane_state::broken)
        return;
    by_epoll &m = mine(lane);
    m.interest = EPOLLIN | (m.sending ? EPOLLOUT : 0u);
    epoll_event e{m.interest, {.u64 = m.serial}};
    m.watched = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, lane.fd.get(), &e) == 0;
    if (own_thread_)
        wake(); /* there is a deadline now */
    if (!m.watched)
        context_.fail(lane, -errno);
}

void epoll_server::watch(zcl_lane &lane)
{
    by_epoll &m = mine(lane);
    if (lane.state == zcl_lane_state::broken || !m.watched)
        return;
    /* EPOLLHUP cannot be declined: edge-triggered, so that it does not come again and again while
     * nothing is read. */
    const std::uint32_t wanted = (m.held ? EPOLLET : EPOLLIN) | (m.sending ? EPOLLOUT : 0u);
    if (wanted == m.interest)
        return;
    m.interest = wanted;
    epoll_event e{wanted, {.u64 = m.serial}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, lane.fd.get(), &e) < 0)
        context_.fail(lane, -errno);
}

void epoll_server::send(zcl_lane &lane)
{
    if (mine(lane).sending)
        return;
    write(lane);
    watch(lane);
}

void epoll_server::receive(zcl_lane &lane)
{
    by_epoll &m = mine(lane);
    if (!m.held)
        return;
    m.held = false;
    nr_held_--;
    watch(lane);
}

void epoll_server::withdraw(zcl_lane &lane)
{
    by_epoll &m = mine(lane);
    while (m.reading)
        read_done_.wait(context_.lock);
    if (m.watched)
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, lane.fd.get(), nullptr);
    m.watched = false;
    nr_held_ -= m.held;
    m.held = false;
    lanes_.erase(m.serial);
}

void epoll_server::serve()
{
    if (nr_held_ > 0) {
        for (auto &lane : context_.lanes)
            if (lane->state != zcl_lane_state::broken)
                receive(*lane);
    }
    if (!own_thread_) {
        /* A hello that came while the caller was away came in time. Each lane has its turn once. */
        std::size_t seen = 0;
        while (look(nullptr, 0) == kMostAtOnce && context_.nr_opening > 0 && seen < lanes_.size())
            seen += kMostAtOnce;
        prepare();
    }
}

int epoll_server::wait(std::unique_lock<std::mutex> &held, std::int64_t timeout_ns)
{
    if (own_thread_) {
        happened_.wait_for(held, std::chrono::nanoseconds(timeout_ns));
        return 0;
    }
    const int due_ms = prepare();
    const std::int64_t left_ms = (timeout_ns + 999'999) / 1'000'000;
    const auto wanted_ms = due_ms < 0 ? left_ms : std::min<std::int64_t>(due_ms, left_ms);
    return context_.events.empty() ? std::min(0, look(&held, static_cast<int>(wanted_ms))) : 0;
}

void epoll_server::wake()
{
    const std::uint64_t one = 1;
    [[maybe_unused]] ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

void epoll_server::write(zcl_lane &lane)
{
    by_epoll &m = mine(lane);
    m.sending = false;
    for (std::size_t sent = 0; !lane.out.empty();) {
        if (sent >= (own_thread_ ? outbound::kMostAtOnce : kMostOfCaller)) {
            m.sending = true;
            return;
        }
        iovec pieces[outbound::kMostPieces];
        msghdr message{};
        message.msg_iov = pieces;
        message.msg_iovlen = static_cast<std::size_t>(lane.out.plan(pieces));
        const ssize_t n = sendmsg(lane.fd.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0) {
            context_.sent(lane, static_cast<std::size_t>(n));
            sent += static_cast<std::size_t>(n);
        } else if (again(errno)) {
            m.sending = true;
            return;
        } else {
            context_.send_failed(lane, -errno);
            return;
        }
    }
}

/* False: nothing more to read now. */
bool epoll_server::read(zcl_lane &lane, std::unique_lock<std::mutex> *held)
{
    by_epoll &m = mine(lane);
    const inbound::spans *plan = context_.plan(lane, 0);
    if (!plan)
        return false;
    pieces to(*plan, own_thread_ ? pieces::kMost : kMostOfCaller);
    if (to.nr == 0) {
        nr_held_ += !m.held;
        context_.stats.held += !m.held;
        m.held = true;
        return false;
    }
    m.reading = true;
    if (held)
        held->unlock();
    const ssize_t n = recvmsg(lane.fd.get(), &to.message, MSG_DONTWAIT);
    const int error = errno;
    if (held)
        held->lock();
    m.reading = false;
    read_done_.notify_all();
    return context_.received(lane, n, error) && static_cast<std::size_t>(n) == to.len;
}

/* @held: let go of while bytes are read; null: another thread might read the same lane. */
void epoll_server::turn(zcl_lane &lane, std::unique_lock<std::mutex> *held)
{
    const std::uint64_t serial = mine(lane).serial;
    if (mine(lane).sending)
        write(lane);
    for (int i = 0; i < (own_thread_ ? kReadsPerTurn : 1); i++) {
        if (lane.state == zcl_lane_state::broken || !read(lane, held))
            break;
    }
    if (!lanes_.count(serial))
        return;
    /* It has just proved itself, which is answered. */
    if (lane.state != zcl_lane_state::broken && !mine(lane).sending && !lane.out.empty())
        write(lane);
    watch(lane);
}

/* What is due before a sleep. Returns how long that may be in ms; negative: for ever. */
int epoll_server::prepare()
{
    const auto next = context_.check_deadlines();
    context_.sweep();
    if (!context_.events.empty())
        happened();
    if (context_.accepting() != listening_) {
        listening_ = !listening_;
        epoll_event e{EPOLLIN, {.u64 = kListenerName}};
        epoll_ctl(epoll_.get(), listening_ ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, context_.listener.get(),
                  &e);
    }
    if (next == clock::time_point::max())
        return -1;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - clock::now());
    return 1 + static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

/* @held: let go of while this waits; null: it does not wait. Return: how many descriptors had
 * something, at most kMostAtOnce, or -EINTR. */
int epoll_server::look(std::unique_lock<std::mutex> *held, int timeout_ms)
{
    epoll_event found[kMostAtOnce];
    if (held)
        held->unlock();
    const int nr = epoll_wait(epoll_.get(), found, std::size(found), timeout_ms);
    const bool interrupted = nr < 0 && errno == EINTR;
    if (held)
        held->lock();
    context_.stats.wakes += nr > 0;
    for (int i = 0; i < nr && !stop_; i++) {
        const std::uint64_t name = found[i].data.u64;
        if (name == kListenerName) {
            context_.accept_all();
        } else if (name == kWakeName) {
            std::uint64_t count;
            [[maybe_unused]] ssize_t n = ::read(wake_.get(), &count, sizeof count);
        } else if (const auto at = lanes_.find(name); at != lanes_.end()) {
            turn(*at->second, own_thread_ ? held : nullptr);
        }
    }
    return interrupted ? -EINTR : std::max(nr, 0);
}

void epoll_server::run()
{
    std::unique_lock<std::mutex> held(context_.lock);
    while (!stop_)
        look(&held, prepare());
}

} // namespace

std::unique_ptr<server> make_epoll_server(zcl_context &context, bool own_thread)
{
    return std::make_unique<epoll_server>(context, own_thread);
}

} // namespace zcl

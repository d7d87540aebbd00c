/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of the two processes that measure lanes; bench/run lane starts both. All engines take turns,
 * repetition by repetition, on the same two processes.
 *
 *   oneway  b posts WINDOW receives, says go, and waits; a sends
 *   both    both post one, meet, and send
 *   ahead   a sends; b computes for half the time of a transfer, then sends; a has posted
 *   late    b says go, computes, and only then receives; a sends at once
 *
 *               a   |-- send -------- held --------|
 *               b   |-- work --------------|-- receive --|-- read --|
 *                                          |-post_to_data-|
 *                   |------------------- total ---------------------|
 *
 * b prints one JSON line per repetition. Processor time is of the whole process, by getrusage(2);
 * in `late` that of the work alone, measured in the same turn, is taken off.
 */
#include "engine.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

namespace {

constexpr int kWindow = 4;

struct settings {
    std::string role, address, peer;
    std::vector<std::string> engines{"ucx1", "ucx", "thread", "uring"};
    std::vector<std::string> cases{"oneway", "both", "ahead", "late"};
    std::vector<std::size_t> sizes{1 << 20, 4 << 20, 16 << 20};
    int port = 7411, cpu = -1, repetitions = 10, warmup = 2;
    double compute_ms = 50;
};

double now_us()
{
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double processor_us()
{
    rusage r{};
    getrusage(RUSAGE_SELF, &r);
    return static_cast<double>(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
           static_cast<double>(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

/* Arithmetic only, so that memory traffic does not blur it. */
volatile double sink;

void work(std::uint64_t rounds)
{
    double x = 1.0;
    for (std::uint64_t i = 0; i < rounds; i++)
        x = x * 1.0000001 + 1e-9;
    sink = x;
}

double rounds_per_us()
{
    double best = 0;
    for (int i = 0; i < 20; i++) {
        const double begin = now_us();
        work(1000000);
        best = std::max(best, 1e6 / (now_us() - begin));
    }
    return best;
}

void fill(void *buf, std::size_t len, std::uint64_t seed)
{
    auto *at = static_cast<std::uint64_t *>(buf);
    for (std::size_t i = 0; i < len / 8; i++)
        at[i] = seed + i * 0x9e3779b97f4a7c15ULL;
}

void verify(const void *buf, std::size_t len, std::uint64_t seed)
{
    const auto *at = static_cast<const std::uint64_t *>(buf);
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < len / 8; i++)
        wrong |= at[i] ^ (seed + i * 0x9e3779b97f4a7c15ULL);
    if (wrong)
        die("wrong data");
}

struct record {
    double us = 0, post_to_data = 0, held = 0, worked = 0, alone = 0, total = 0;
    double cpu_send = 0, cpu_receive = 0;
};

struct bench {
    const settings &s;
    control peer;
    bool a;
    double per_us;
    std::vector<std::pair<std::string, std::unique_ptr<engine>>> engines;
    std::vector<char> out, in;

    std::uint64_t seed(std::size_t len, int rep, int k) const
    {
        return len * 1000003 + static_cast<std::uint64_t>(rep) * 97 + static_cast<std::uint64_t>(k);
    }

    record oneway(engine &e, std::size_t len, int rep)
    {
        record r;
        if (a) {
            for (int k = 0; k < kWindow; k++)
                fill(&out[static_cast<std::size_t>(k) * len], len, seed(len, rep, k));
            peer.get<char>();
            const double cpu = processor_us();
            for (int k = 0; k < kWindow; k++)
                e.send(&out[static_cast<std::size_t>(k) * len], len);
            e.wait_sent();
            peer.put(processor_us() - cpu);
            return r;
        }
        const double cpu = processor_us();
        for (int k = 0; k < kWindow; k++)
            e.post(&in[static_cast<std::size_t>(k) * len], len);
        peer.put('g');
        const double begin = now_us();
        std::vector<const void *> got;
        for (int k = 0; k < kWindow; k++) {
            got.push_back(e.receive(len));
            e.release();
        }
        r.us = now_us() - begin;
        r.cpu_receive = processor_us() - cpu;
        r.cpu_send = peer.get<double>();
        for (int k = 0; k < kWindow; k++)
            verify(got[static_cast<std::size_t>(k)], len, seed(len, rep, k));
        return r;
    }

    /** One block each way, since @begin; the record is the slower side's, made by b. */
    record exchange(engine &e, std::size_t len, int rep, double begin, double cpu)
    {
        record r;
        e.send(out.data(), len);
        const void *got = e.receive(len);
        e.wait_sent();
        r.us = now_us() - begin;
        r.cpu_receive = processor_us() - cpu;
        verify(got, len, seed(len, rep, !a));
        e.release();
        if (a) {
            peer.put(r);
        } else {
            const record other = peer.get<record>();
            r.us = std::max(r.us, other.us);
            r.cpu_send = other.cpu_receive;
        }
        return r;
    }

    record both(engine &e, std::size_t len, int rep)
    {
        fill(out.data(), len, seed(len, rep, a));
        e.post(in.data(), len);
        peer.meet();
        const double begin = now_us(), cpu = processor_us();
        return exchange(e, len, rep, begin, cpu);
    }

    record ahead(engine &e, std::size_t len, int rep, double half_us)
    {
        fill(out.data(), len, seed(len, rep, a));
        if (a)
            e.post(in.data(), len);
        peer.meet();
        const double begin = now_us(), cpu = processor_us();
        if (!a)
            work(static_cast<std::uint64_t>(half_us * per_us));
        return exchange(e, len, rep, begin, cpu);
    }

    record late(engine &e, std::size_t len, int rep)
    {
        record r;
        if (a) {
            fill(out.data(), len, seed(len, rep, 0));
            peer.get<char>();
            const double begin = now_us(), cpu = processor_us();
            e.send(out.data(), len);
            e.wait_sent();
            r.held = now_us() - begin;
            r.cpu_send = processor_us() - cpu;
            peer.put(r);
            return r;
        }
        const auto rounds = static_cast<std::uint64_t>(s.compute_ms * 1000 * per_us);
        double begin = now_us(), cpu = processor_us();
        work(rounds);
        r.alone = now_us() - begin;
        const double cpu_alone = processor_us() - cpu;

        cpu = processor_us();
        peer.put('g');
        begin = now_us();
        work(rounds);
        const double posted = now_us();
        const void *got = e.receive(len);
        const double there = now_us();
        r.cpu_receive = processor_us() - cpu - cpu_alone;
        verify(got, len, seed(len, rep, 0));
        r.total = now_us() - begin;
        r.worked = posted - begin;
        r.post_to_data = there - posted;
        e.release();
        const record other = peer.get<record>();
        r.held = other.held;
        r.cpu_send = other.cpu_send;
        return r;
    }

    void print(const std::string &what, const std::string &name, std::size_t len, int rep,
               const record &r) const
    {
        const double messages = what == "oneway" ? kWindow : what == "late" ? 1 : 2;
        const double gib = messages * static_cast<double>(len) / (1 << 30);
        std::string line = fmt::format(
            "{{\"bench\":\"lane\",\"case\":\"{}\",\"engine\":\"{}\",\"bytes\":{},\"rep\":{}", what,
            name, len, rep);
        if (what == "late")
            line += fmt::format(",\"post_to_data_us\":{:.1f},\"held_us\":{:.1f},\"stretch\":{:.4f},"
                                "\"total_us\":{:.1f}",
                                r.post_to_data, r.held, r.worked / r.alone, r.total);
        else
            line += fmt::format(",\"us\":{:.1f},\"mb_per_s\":{:.1f}", r.us,
                                messages * static_cast<double>(len) / r.us);
        if (what == "late" || what == "oneway")
            line +=
                fmt::format(",\"cpu_send_ms_per_gib\":{:.1f},\"cpu_receive_ms_per_gib\":{:.1f}}}",
                            r.cpu_send / gib / 1000, r.cpu_receive / gib / 1000);
        else
            line += fmt::format(",\"cpu_ms_per_gib\":{:.1f}}}",
                                (r.cpu_send + r.cpu_receive) / gib / 1000);
        std::puts(line.c_str());
        std::fflush(stdout);
    }

    /* The least time of a transfer here, the same for all engines. */
    double transfer_us(std::size_t len)
    {
        double best = 1e12;
        for (int rep = 0; rep < 3; rep++)
            for (auto &[name, e] : engines)
                best = std::min(best, oneway(*e, len, 1000 + rep).us / kWindow);
        if (a)
            return peer.get<double>();
        peer.put(best);
        return best;
    }

    void run()
    {
        for (const std::size_t len : s.sizes) {
            const double half_us = transfer_us(len) / 2;
            for (const std::string &what : s.cases) {
                for (int rep = -s.warmup; rep < s.repetitions; rep++) {
                    for (std::size_t turn = 0; turn < engines.size(); turn++) {
                        /* None is always the one after the same other. */
                        const std::size_t first = static_cast<std::size_t>(rep + s.warmup);
                        auto &[name, e] = engines[(first + turn) % engines.size()];
                        peer.meet();
                        record r;
                        if (what == "oneway")
                            r = oneway(*e, len, rep + 50);
                        else if (what == "both")
                            r = both(*e, len, rep + 50);
                        else if (what == "ahead")
                            r = ahead(*e, len, rep + 50, half_us);
                        else
                            r = late(*e, len, rep + 50);
                        if (!a && rep >= 0)
                            print(what, name, len, rep, r);
                    }
                }
            }
        }
    }
};

settings parse(int argc, char **argv)
{
    settings s;
    CLI::App app{"One of the two processes that measure lanes (see bench/run lane)."};
    app.add_option("role", s.role, "a sends, b receives and prints")
        ->required()
        ->check(CLI::IsMember({"a", "b"}));
    app.add_option("--address", s.address, "of this host")->required();
    app.add_option("--peer", s.peer, "address of the other")->required();
    app.add_option("--port", s.port, "for the two to meet, on b's host");
    app.add_option("--cpu", s.cpu, "the one processor of this process; default: any");
    app.add_option("--engines", s.engines, "ucx1, ucx (a worker per direction), thread, uring")
        ->delimiter(',')
        ->check(CLI::IsMember({"ucx1", "ucx", "thread", "uring"}));
    app.add_option("--cases", s.cases, "oneway, both, ahead, late")
        ->delimiter(',')
        ->check(CLI::IsMember({"oneway", "both", "ahead", "late"}));
    app.add_option("--sizes", s.sizes, "bytes, multiples of 8")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false));
    app.add_option("--repetitions", s.repetitions, "of each")->check(CLI::PositiveNumber);
    app.add_option("--warmup", s.warmup, "repetitions before that")->check(CLI::NonNegativeNumber);
    app.add_option("--compute-ms", s.compute_ms, "work of a late receiver");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        std::exit(app.exit(e) == 0 ? 0 : 2);
    }
    return s;
}

} // namespace

int main(int argc, char **argv)
{
    const settings s = parse(argc, argv);
    if (s.cpu >= 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(s.cpu), &one);
        if (sched_setaffinity(0, sizeof one, &one) < 0)
            die("no processor %d: %s", s.cpu, std::strerror(errno));
    }
    setenv("UCX_TLS", "tcp,self", 0);
    const bool a = s.role == "a";
    bench b{s,  a ? control::connect(s.peer, s.port) : control::listen(s.address, s.port),
            a,  rounds_per_us(),
            {}, {},
            {}};
    const std::size_t longest = *std::max_element(s.sizes.begin(), s.sizes.end());
    b.out.assign(longest * kWindow, 1);
    b.in.assign(longest * kWindow, 1);
    for (const std::string &name : s.engines) {
        std::string why;
        auto e = name.starts_with("ucx") ? make_ucx_engine(name == "ucx", longest)
                                         : make_lane_engine(name, s.address, &why);
        /* Both or none. */
        b.peer.put(e != nullptr);
        if (!b.peer.get<bool>() || !e) {
            std::fprintf(stderr, "lane_pair: no engine %s: %s\n", name.c_str(), why.c_str());
            continue;
        }
        e->connect(b.peer, a);
        b.engines.emplace_back(name, std::move(e));
    }
    if (b.engines.empty())
        die("no engine works here");
    b.run();
    b.peer.meet();
    std::fflush(stdout);
    _exit(0); /* UCX's teardown between two processes is nothing to measure */
}

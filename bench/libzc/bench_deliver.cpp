/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_deliver: what a late receiver pays for a landed message.
 *
 * One sample: land a message, compute for a while (which empties the caches),
 * then, timed, deliver it, and, timed, read every byte of it. Delivery by
 * exchange leaves the data cold and delivery by copy leaves it warm, so the
 * two times only mean something together.
 *
 * The loop is our own and Google Benchmark lends only DoNotOptimize(): its
 * runner measures one implementation after another and times one phase each,
 * whereas here implementations alternate sample by sample, so that a change
 * of load or clock hits all of them, and each sample has two phases.
 */

#include <zc/zc.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>

namespace {

struct options {
    int repetitions = 21;
    std::string min_bytes = "8k";
    std::string max_bytes = "64m";
    std::string out = "out/libzc.jsonl";
    bool sleeper = false;
    bool huge = false;
};

struct sample {
    double deliver_us;
    double read_us;
};

struct impl {
    const char *name;
    std::uint32_t means;
    std::uint32_t flags;
};

constexpr impl kImpls[] = {
    {"memcpy", 0, 0}, /* between two plain buffers, without libzc */
    {"zc-copy", 1u << ZC_MEANS_COPY, 0},
    {"zc-mremap", 1u << ZC_MEANS_MREMAP, ZC_FLAG_ALWAYS_REBIND},
    {"zc-kmod", 1u << ZC_MEANS_KMOD, ZC_FLAG_ALWAYS_REBIND}, /* only with the module */
    {"zc", 0, 0},
};

/** Can it be had on this machine? */
bool available(const impl &i)
{
    if (i.means != 1u << ZC_MEANS_KMOD)
        return true;
    zc_params_t p{};
    p.size = sizeof(p);
    p.means = i.means;
    auto made = zc::context::create(p);
    return made && made->stats().kmod_error == 0;
}

/** Those of kImpls that can be had. */
std::vector<impl> available_impls()
{
    std::vector<impl> all;
    for (const impl &i : kImpls)
        if (available(i))
            all.push_back(i);
    return all;
}

double now_us()
{
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

/** Populated anonymous memory; the data begins where malloc() would put it. */
class memory {
  public:
    memory(std::size_t bytes, bool huge) : bytes_(bytes + 4096)
    {
        base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base_ == MAP_FAILED)
            throw std::bad_alloc();
        if (huge)
            (void)madvise(base_, bytes_, MADV_HUGEPAGE);
        std::memset(base_, 1, bytes_);
    }
    ~memory() { munmap(base_, bytes_); }
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;
    char *data() const { return static_cast<char *>(base_) + 16; }

  private:
    std::size_t bytes_;
    void *base_;
};

/** What the application does before it posts the receive: something else. */
void compute()
{
    static std::vector<std::uint64_t> work((std::size_t{96} << 20) / sizeof(std::uint64_t));
    for (std::uint64_t &word : work)
        word += 1;
    benchmark::ClobberMemory();
}

std::uint64_t checksum(const char *data, std::size_t len)
{
    std::uint64_t sum = 0, word;
    for (; len >= sizeof(word); data += sizeof(word), len -= sizeof(word)) {
        std::memcpy(&word, data, sizeof(word));
        sum += word;
    }
    for (; len > 0; data++, len--)
        sum += static_cast<unsigned char>(*data);
    return sum;
}

/** One implementation at one size. */
class runner {
  public:
    runner(const impl &what, std::size_t bytes, bool huge)
        : what_(what), bytes_(bytes), user_(bytes, huge)
    {
        if (!what.means && !std::strcmp(what.name, "memcpy")) {
            plain_ = std::make_unique<memory>(bytes, huge);
            return;
        }
        zc_params_t p{};
        p.size = sizeof(p);
        p.means = what.means;
        p.flags = what.flags;
        auto made = zc::context::create(p);
        if (!made)
            throw std::system_error(-made.error(), std::generic_category(), "zc_create");
        zc_ = std::move(*made);
        if (int err = zc_calibrate(zc_.get(), nullptr))
            throw std::system_error(-err, std::generic_category(), "zc_calibrate");
    }

    sample run(int seed)
    {
        zc::landing landing;
        if (!plain_) {
            auto acquired = zc_.acquire(bytes_, user_.data());
            if (!acquired)
                throw std::system_error(-acquired.error(), std::generic_category(), "acquire");
            landing = std::move(*acquired);
        }
        char *landed = plain_ ? plain_->data() : static_cast<char *>(landing.data());
        std::memset(landed, seed, bytes_);
        std::uint64_t expected = checksum(landed, bytes_);
        compute();

        sample s;
        double start = now_us();
        if (plain_)
            std::memcpy(user_.data(), landed, bytes_);
        else
            last_ = *landing.deliver(user_.data(), bytes_);
        benchmark::ClobberMemory();
        double delivered = now_us();
        std::uint64_t sum = checksum(user_.data(), bytes_);
        benchmark::DoNotOptimize(sum);
        s = {delivered - start, now_us() - delivered};
        if (sum != expected)
            throw std::runtime_error("wrong data was delivered");
        return s;
    }

    bool rebound() const { return last_.bytes_rebound > 0; }
    const char *name() const { return what_.name; }

  private:
    impl what_;
    std::size_t bytes_;
    memory user_;
    std::unique_ptr<memory> plain_;
    zc::context zc_;
    zc_delivery_t last_{};
};

struct spread {
    double median, p10, p90;
};

spread spread_of(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    auto at = [&](double q) {
        return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1) + 0.5)];
    };
    return {at(0.5), at(0.1), at(0.9)};
}

nlohmann::ordered_json context()
{
    utsname name{};
    uname(&name);
    double load[1] = {0};
    (void)getloadavg(load, 1);
    std::string cpu, thp;
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; cpu.empty() && std::getline(info, line);)
        if (line.starts_with("model name"))
            cpu = line.substr(line.find(':') + 2);
    std::ifstream mode("/sys/kernel/mm/transparent_hugepage/enabled");
    std::getline(mode, thp);
    std::time_t now = std::time(nullptr);
    char date[32];
    std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    return {{"context",
             {{"kernel", name.release},
              {"cpu", cpu},
              {"thp", thp},
              {"load", load[0]},
              {"versions", {{"zc", zc_version()}}},
              {"date", date}}}};
}

class report {
  public:
    report(const options &opt, const std::vector<impl> &impls) : opt_(opt), impls_(impls)
    {
        std::filesystem::path path(opt.out);
        if (path.has_parent_path())
            std::filesystem::create_directories(path.parent_path());
        out_.open(path);
        out_ << context().dump() << '\n';
        fmt::print("medians in us: deliver + read = total (p10..p90 of the total)\n");
        fmt::print("{:>9}", "bytes");
        for (const impl &i : impls_)
            fmt::print("  {:^38}", i.name);
        fmt::print("\n");
    }

    void add(std::size_t bytes, const std::vector<std::unique_ptr<runner>> &runners,
             const std::map<std::string, std::vector<sample>> &samples)
    {
        fmt::print("{:>9}", bytes);
        for (const auto &r : runners) {
            std::vector<double> deliver, read, total;
            for (const sample &s : samples.at(r->name())) {
                deliver.push_back(s.deliver_us);
                read.push_back(s.read_us);
                total.push_back(s.deliver_us + s.read_us);
            }
            spread d = spread_of(deliver), e = spread_of(read), t = spread_of(total);
            fmt::print("  {:>8.1f} +{:>8.1f} ={:>8.1f} ({:.0f}..{:.0f}){}", d.median, e.median,
                       t.median, t.p10, t.p90, r->rebound() ? "*" : " ");
            line(bytes, r->name(), "deliver", d, deliver.size());
            line(bytes, r->name(), "read", e, read.size());
            line(bytes, r->name(), "total", t, total.size());
            totals_[bytes][r->name()] = t.median;
            delivers_[bytes][r->name()] = d.median;
        }
        fmt::print("\n");
        std::fflush(stdout);
    }

    void finish()
    {
        fmt::print("* pages were exchanged\n");
        for (const impl &i : impls_) {
            if (i.flags & ZC_FLAG_ALWAYS_REBIND) {
                even(i.name, "deliver", delivers_);
                even(i.name, "total", totals_);
            }
        }
    }

    bool good() { return static_cast<bool>(out_.flush()); }

  private:
    using medians = std::map<std::size_t, std::map<std::string, double>>;

    std::string case_name() const
    {
        return fmt::format("cold{}{}", opt_.huge ? "-huge" : "", opt_.sleeper ? "-sleeper" : "");
    }

    void line(std::size_t bytes, const char *name, const char *metric, spread s, std::size_t n)
    {
        nlohmann::ordered_json j{{"bench", "libzc"},   {"case", case_name()},
                                 {"impl", name},       {"bytes", bytes},
                                 {"metric", metric},   {"unit", "us"},
                                 {"median", s.median}, {"p10", s.p10},
                                 {"p90", s.p90},       {"n", n}};
        out_ << j.dump() << '\n';
    }

    /** The size from which on exchanging wins at every size measured. */
    void even(const char *name, const char *metric, const medians &m)
    {
        std::size_t from = 0;
        for (auto it = m.rbegin(); it != m.rend(); ++it) {
            if (it->second.at(name) >= it->second.at("memcpy"))
                break;
            from = it->first;
        }
        if (from)
            fmt::print("break-even of {} by {}: {} bytes\n", name, metric, from);
        else
            fmt::print("break-even of {} by {}: none up to the largest size\n", name, metric);
        double value = static_cast<double>(from);
        nlohmann::ordered_json j{{"bench", "libzc"},
                                 {"case", case_name()},
                                 {"impl", name},
                                 {"bytes", 0},
                                 {"metric", fmt::format("break_even_{}", metric)},
                                 {"unit", "bytes"},
                                 {"median", value},
                                 {"p10", value},
                                 {"p90", value},
                                 {"n", 1}};
        out_ << j.dump() << '\n';
    }

    options opt_;
    std::vector<impl> impls_;
    std::ofstream out_;
    medians totals_, delivers_;
};

int run(const options &opt)
{
    std::size_t min_bytes = 0, max_bytes = 0;
    if (opt.repetitions < 1 || zc_parse_size(opt.min_bytes.c_str(), &min_bytes) != 0 ||
        zc_parse_size(opt.max_bytes.c_str(), &max_bytes) != 0 || min_bytes == 0 ||
        min_bytes > max_bytes || max_bytes == SIZE_MAX) {
        fmt::print(stderr, "bench_deliver: wrong --repetitions, --min-bytes or --max-bytes\n");
        return 2;
    }
    std::jthread sleeper;
    if (opt.sleeper)
        sleeper = std::jthread([](std::stop_token stop) {
            while (!stop.stop_requested())
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
        });

    const std::vector<impl> impls = available_impls();
    report out(opt, impls);
    for (std::size_t bytes = min_bytes; bytes <= max_bytes; bytes *= 2) {
        std::vector<std::unique_ptr<runner>> runners;
        for (const impl &i : impls)
            runners.push_back(std::make_unique<runner>(i, bytes, opt.huge));
        std::map<std::string, std::vector<sample>> samples;
        for (auto &r : runners)
            (void)r->run(0); /* populates the pool */
        for (int i = 0; i < opt.repetitions; i++)
            for (auto &r : runners)
                samples[r->name()].push_back(r->run(i));
        out.add(bytes, runners, samples);
    }
    out.finish();
    return out.good() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
    options opt;
    CLI::App app{"Compares deliveries by libzc with memcpy, cold, each followed by a read."};
    app.add_option("--repetitions", opt.repetitions, "samples per size");
    app.add_option("--min-bytes", opt.min_bytes, "smallest message; doubled up to the largest");
    app.add_option("--max-bytes", opt.max_bytes, "largest message, e.g. 64m");
    app.add_option("--out", opt.out, "JSON lines are written here");
    app.add_flag("--sleeper", opt.sleeper, "with a second, sleeping thread");
    app.add_flag("--huge", opt.huge, "user buffers on huge pages");
    CLI11_PARSE(app, argc, argv);
    try {
        return run(opt);
    } catch (const std::exception &e) {
        fmt::print(stderr, "bench_deliver: {}\n", e.what());
        return 1;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "csv_trace.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace fs = std::filesystem;

namespace zc::report {

namespace {

/** Lines of a file, gzip or plain. */
class line_reader {
  public:
    explicit line_reader(const fs::path &path) : path_(path.string())
    {
        errno = 0;
        file_.reset(gzopen(path_.c_str(), "rb"));
        if (!file_)
            throw trace_error(
                fmt::format("{}: {}", path_, errno ? std::strerror(errno) : "out of memory"));
        gzbuffer(file_.get(), 1u << 17);
    }

    /** The next line without its end; false at the end of the file. */
    bool next(std::string &line)
    {
        line.clear();
        std::array<char, 4096> part;
        while (gzgets(file_.get(), part.data(), static_cast<int>(part.size()))) {
            line += part.data();
            if (line.back() == '\n') {
                line.pop_back();
                if (!line.empty() && line.back() == '\r')
                    line.pop_back();
                number_++;
                return true;
            }
        }
        check();
        if (line.empty())
            return false;
        number_++;
        return true; /* a last line without an end */
    }

    [[noreturn]] void fail(const std::string &reason) const
    {
        throw trace_error(fmt::format("{}:{}: {}", path_, std::max<size_t>(number_, 1), reason));
    }

  private:
    void check() const
    {
        int code = Z_OK;
        const char *text = gzerror(file_.get(), &code);
        if (code == Z_BUF_ERROR)
            fail("gzip data ends too early");
        if (code != Z_OK && code != Z_STREAM_END)
            fail(code == Z_ERRNO ? std::strerror(errno) : text);
    }

    struct close {
        void operator()(gzFile file) const { gzclose(file); }
    };
    std::string path_;
    std::unique_ptr<gzFile_s, close> file_;
    size_t number_ = 0;
};

enum column { comm, src, tag, bytes, addr, t_post, t_sent, arrival_order, nr_columns };
constexpr std::array<std::string_view, nr_columns> kNames = {
    "comm", "src", "tag", "bytes", "addr", "t_post", "t_sent", "arrival_order"};
constexpr size_t kAbsent = std::numeric_limits<size_t>::max();

std::vector<std::string_view> split(std::string_view line)
{
    std::vector<std::string_view> fields;
    for (;;) {
        const size_t comma = line.find(',');
        fields.push_back(line.substr(0, comma));
        if (comma == line.npos)
            return fields;
        line.remove_prefix(comma + 1);
    }
}

/** Where in a row each column stands. */
struct heading {
    std::array<size_t, nr_columns> at;
    size_t width;
};

heading read_heading(const line_reader &reader, std::string_view line)
{
    const auto names = split(line);
    heading heading{{}, names.size()};
    for (size_t c = 0; c < nr_columns; c++) {
        const auto found = std::find(names.begin(), names.end(), kNames[c]);
        heading.at[c] = found == names.end() ? kAbsent : static_cast<size_t>(found - names.begin());
        if (heading.at[c] == kAbsent && c != arrival_order)
            reader.fail(fmt::format("no column \"{}\"", kNames[c]));
    }
    return heading;
}

/** Numbers of one row. */
class row {
  public:
    row(const line_reader &reader, const heading &heading, std::string_view line)
        : reader_(reader), heading_(heading), fields_(split(line))
    {
        if (fields_.size() != heading.width)
            reader.fail(fmt::format("{} fields where the first line has {}", fields_.size(),
                                    heading.width));
    }

    template <typename T>
    T number(column c, int base = 10) const
    {
        std::string_view text = fields_[heading_.at[c]];
        if (base == 16 && (text.starts_with("0x") || text.starts_with("0X")))
            text.remove_prefix(2);
        T value{};
        const auto [end, error] = std::from_chars(text.begin(), text.end(), value, base);
        if (error != std::errc{} || end != text.end() || text.empty())
            reader_.fail(fmt::format("column \"{}\": bad number \"{}\"", kNames[c],
                                     fields_[heading_.at[c]]));
        return value;
    }

  private:
    const line_reader &reader_;
    const heading &heading_;
    std::vector<std::string_view> fields_;
};

/** "r12.csv.gz" → 12. */
std::optional<int> rank_of(const fs::path &file)
{
    std::string name = file.filename().string();
    for (const std::string_view ending : {".csv.gz", ".csv"}) {
        if (!name.ends_with(ending))
            continue;
        name.resize(name.size() - ending.size());
        int rank = 0;
        const char *end = name.data() + name.size();
        if (name.size() > 1 && name[0] == 'r' &&
            std::from_chars(name.data() + 1, end, rank).ptr == end && rank >= 0)
            return rank;
    }
    return {};
}

} // namespace

bool is_csv_trace(const fs::path &file)
{
    return rank_of(file).has_value();
}

trace load_csv_trace(const fs::path &file)
{
    line_reader reader(file);
    std::string line;
    if (!reader.next(line))
        reader.fail("empty file");
    const heading heading = read_heading(reader, line);

    trace trace{
        fs::absolute(file).parent_path().filename().string(), rank_of(file).value_or(0), {}, {}};
    while (reader.next(line)) {
        const row row(reader, heading, line);
        traced_receive r{};
        zcp_envelope_t &envelope = r.receive.envelope;
        envelope.comm = row.number<uint32_t>(comm);
        envelope.source = row.number<int32_t>(src);
        envelope.tag = row.number<int32_t>(tag);
        envelope.bytes = row.number<uint64_t>(bytes);
        r.receive.addr = row.number<uint64_t>(addr, 16);
        r.posted = row.number<int64_t>(t_post);
        r.sent = row.number<int64_t>(t_sent);
        if (heading.at[arrival_order] != kAbsent)
            r.arrival = row.number<uint64_t>(arrival_order);
        if (envelope.source < 0)
            reader.fail("column \"src\": a received message has a sender");
        trace.receives.push_back(r);
    }
    if (heading.at[arrival_order] == kAbsent)
        number_arrivals(trace.receives);
    return trace;
}

} // namespace zc::report

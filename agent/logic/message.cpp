/* SPDX-License-Identifier: BSD-3-Clause */
#include "message.h"

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>

namespace zc::agent {
namespace {

/** Appends little-endian numbers. What it is given, it takes to be right. */
class writer {
  public:
    template <class T>
    void number(T value)
    {
        if constexpr (sizeof(T) == 8)
            put(std::bit_cast<std::uint64_t>(value), 8);
        else if constexpr (sizeof(T) == 4)
            put(std::bit_cast<std::uint32_t>(value), 4);
        else
            put(static_cast<std::uint64_t>(value), sizeof(T));
    }
    void amount(float value) { number(value); }
    void flag(bool value) { put(value ? 1 : 0, 1); }
    template <class Enum>
    void one_of(Enum value, Enum)
    {
        put(static_cast<std::uint64_t>(value), 1);
    }
    void text(const std::string &value, std::size_t most = kMaxText)
    {
        std::size_t length = std::min(value.size(), most);
        number(static_cast<std::uint16_t>(length));
        bytes_.append(value, 0, length);
    }
    template <class T, class Each>
    void list(const std::vector<T> &values, std::size_t most, std::size_t, Each &&each)
    {
        std::size_t count = std::min(values.size(), most);
        number(static_cast<std::uint16_t>(count));
        for (std::size_t i = 0; i < count; i++)
            each(values[i]);
    }
    void zeros(std::size_t count) { bytes_.append(count, '\0'); }
    void require(bool) {}
    void patch(std::size_t at, std::uint32_t value)
    {
        for (int i = 0; i < 4; i++)
            bytes_[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
    }
    std::string take() { return std::move(bytes_); }
    std::size_t size() const { return bytes_.size(); }

  private:
    void put(std::uint64_t value, std::size_t width)
    {
        for (std::size_t i = 0; i < width; i++)
            bytes_.push_back(static_cast<char>(value >> (8 * i)));
    }
    std::string bytes_;
};

/** Takes them off again; after the first flaw everything is zero and stays so. */
class reader {
  public:
    explicit reader(std::string_view bytes) : bytes_(bytes) {}

    template <class T>
    void number(T &value)
    {
        if constexpr (sizeof(T) == 8)
            value = std::bit_cast<T>(get(8));
        else if constexpr (sizeof(T) == 4)
            value = std::bit_cast<T>(static_cast<std::uint32_t>(get(4)));
        else
            value = static_cast<T>(get(sizeof(T)));
    }
    /** Neither negative nor beyond all measure. */
    void amount(float &value)
    {
        number(value);
        require(std::isfinite(value) && value >= 0 && value <= 1e15f);
    }
    void flag(bool &value)
    {
        std::uint64_t byte = get(1);
        require(byte <= 1);
        value = byte == 1;
    }
    template <class Enum>
    void one_of(Enum &value, Enum last)
    {
        std::uint64_t byte = get(1);
        if (byte > static_cast<std::uint64_t>(last)) {
            fail(flaw::bad_value);
            byte = 0;
        }
        value = static_cast<Enum>(byte);
    }
    void text(std::string &value, std::size_t most = kMaxText)
    {
        std::uint64_t length = get(2);
        require(length <= most);
        if (flaw_ == flaw::none && length > bytes_.size())
            fail(flaw::truncated);
        if (flaw_ != flaw::none)
            return;
        value.assign(bytes_.substr(0, length));
        bytes_.remove_prefix(length);
        for (char c : value) { /* they go to logs and terminals */
            if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
                fail(flaw::bad_value);
        }
    }
    template <class T, class Each>
    void list(std::vector<T> &values, std::size_t most, std::size_t least_bytes, Each &&each)
    {
        std::uint64_t count = get(2);
        if (count > most)
            fail(flaw::bad_value);
        else if (count * least_bytes > bytes_.size())
            fail(flaw::truncated);
        if (flaw_ != flaw::none)
            return;
        values.resize(count);
        for (T &value : values)
            each(value);
    }
    void zeros(std::size_t count)
    {
        if (count > bytes_.size())
            return fail(flaw::truncated);
        for (char c : bytes_.substr(0, count)) {
            if (c != 0)
                return fail(flaw::bad_value);
        }
        bytes_.remove_prefix(count);
    }
    void require(bool holds)
    {
        if (!holds)
            fail(flaw::bad_value);
    }
    flaw end()
    {
        if (flaw_ == flaw::none && !bytes_.empty())
            flaw_ = flaw::trailing;
        return flaw_;
    }

  private:
    void fail(flaw f)
    {
        if (flaw_ == flaw::none)
            flaw_ = f;
    }
    std::uint64_t get(std::size_t width)
    {
        if (width > bytes_.size())
            fail(flaw::truncated);
        if (flaw_ != flaw::none)
            return 0;
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < width; i++)
            value |= std::uint64_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
        bytes_.remove_prefix(width);
        return value;
    }
    std::string_view bytes_;
    flaw flaw_ = flaw::none;
};

/* One function per layout, for both directions: what is written is what is read. */

template <class T, class... Plain>
concept is = (std::same_as<std::remove_const_t<T>, Plain> || ...);

void fields(auto &s, is<txn_id> auto &v)
{
    s.number(v.decider);
    s.number(v.number);
    s.require(v.decider != kNoNode);
}

void fields(auto &s, is<load_digest> auto &v)
{
    s.amount(v.cpus);
    s.amount(v.demand);
    s.amount(v.speed);
    s.number(v.ranks);
    s.number(v.room);
    s.number(v.free_bytes);
    s.flag(v.draining);
}

void fields(auto &s, is<member> auto &v)
{
    s.number(v.id);
    s.number(v.incarnation);
    s.number(v.version);
    s.one_of(v.state, member_state::left);
    s.text(v.host);
    s.text(v.address);
    fields(s, v.load);
    s.require(v.id != kNoNode);
}
constexpr std::size_t kLeastMember = 8 + 8 + 4 + 1 + 2 + 2 + 29;

void fields(auto &s, is<std::vector<member>> auto &v)
{
    s.list(v, kMaxGossip, kLeastMember, [&](auto &m) { fields(s, m); });
}

void fields(auto &s, is<std::vector<rank_id>> auto &v)
{
    s.list(v, kMaxRanks, 4, [&](auto &rank) { s.number(rank); });
    s.require(!v.empty());
}

void fields(auto &s, is<std::vector<traveller>> auto &v)
{
    s.list(v, kMaxRanks, 12, [&](auto &each) {
        s.number(each.rank);
        s.number(each.home);
        s.require(each.home != kNoNode);
    });
    s.require(!v.empty());
}

void fields(auto &s, is<std::vector<msg::sent>> auto &v)
{
    s.list(v, kMaxPast, 20, [&](auto &each) {
        s.number(each.src);
        s.number(each.dst);
        s.number(each.bytes);
        s.number(each.age_us);
    });
    s.require(!v.empty());
}

void fields(auto &s, is<msg::ping, msg::ack> auto &v)
{
    s.number(v.nonce);
    fields(s, v.gossip);
}

void fields(auto &s, is<msg::ping_for_me, msg::it_lives> auto &v)
{
    s.number(v.nonce);
    s.number(v.target);
}

void fields(auto &s, is<msg::probe> auto &v)
{
    s.number(v.nonce);
    s.number(v.padding);
    s.zeros(v.padding);
}

void fields(auto &s, is<msg::probe_ack> auto &v)
{
    s.number(v.nonce);
}

void fields(auto &s, is<msg::link> auto &v)
{
    s.number(v.node);
    s.amount(v.rtt_us);
    s.amount(v.bytes_per_us);
}

void fields(auto &s, is<msg::steal> auto &v)
{
    s.number(v.packet);
    fields(s, v.thief);
    s.number(v.hops);
    s.list(v.visited, kMaxVisited, 8, [&](auto &node) { s.number(node); });
    s.list(v.links, kMaxLinks, 16, [&](auto &link) { fields(s, link); });
    s.require(v.hops <= kMaxVisited);
}

void fields(auto &s, is<msg::nudge> auto &v)
{
    fields(s, v.sender);
}

void fields(auto &s, is<msg::reserve> auto &v)
{
    fields(s, v.txn);
    s.number(v.job);
    fields(s, v.ranks);
    s.number(v.bytes);
    s.number(v.moves);
}

void fields(auto &s, is<msg::reserved> auto &v)
{
    fields(s, v.txn);
    s.flag(v.granted);
    fields(s, v.load);
    s.text(v.reason);
}

void fields(auto &s, is<msg::lend> auto &v)
{
    fields(s, v.txn);
    s.number(v.job);
    s.number(v.epoch);
    s.number(v.target);
    fields(s, v.ranks);
    s.require(v.target != kNoNode);
}

void fields(auto &s, is<msg::lent> auto &v)
{
    fields(s, v.txn);
    s.flag(v.granted);
    s.number(v.bytes);
    s.text(v.reason);
}

void fields(auto &s, is<msg::release> auto &v)
{
    fields(s, v.txn);
    s.flag(v.moved);
}

void fields(auto &s, is<msg::ask> auto &v)
{
    fields(s, v.txn);
    s.number(v.incarnation);
    s.number(v.job);
    s.number(v.epoch);
    s.number(v.target);
    s.text(v.host);
    fields(s, v.ranks);
}

void fields(auto &s, is<msg::query> auto &v)
{
    fields(s, v.txn);
    s.number(v.job);
}

void fields(auto &s, is<msg::outcome> auto &v)
{
    fields(s, v.txn);
    s.number(v.job);
    s.one_of(v.what, msg::verdict::unknown);
    s.number(v.epoch);
    s.number(v.bytes);
    for (auto &ms : v.phase_ms)
        s.amount(ms);
    s.text(v.reason);
}

void fields(auto &, is<msg::leave> auto &) {}

void fields(auto &s, is<msg::past> auto &v)
{
    fields(s, v.txn);
    s.number(v.job);
    fields(s, v.events);
}

void fields(auto &s, is<msg::traffic> auto &v)
{
    s.number(v.job);
    s.number(v.at_ns);
    fields(s, v.events);
}

template <std::size_t I = 0>
flaw read_body(std::size_t type, reader &r, message_body &body)
{
    if constexpr (I == std::variant_size_v<message_body>) {
        return flaw::bad_type;
    } else {
        if (type != I)
            return read_body<I + 1>(type, r, body);
        fields(r, body.emplace<I>());
        return r.end();
    }
}

constexpr std::array<std::string_view, std::variant_size_v<message_body>> kNames = {
    "ping",  "ack",     "ping_for_me", "it_lives", "probe",   "probe_ack", "steal",
    "nudge", "reserve", "reserved",    "lend",     "lent",    "release",   "ask",
    "query", "outcome", "leave",       "past",     "traffic",
};
constexpr std::array<std::string_view, kFlaws> kFlawNames = {
    "none",     "too_short",  "too_long",        "bad_magic", "bad_version",
    "bad_type", "bad_length", "truncated",       "trailing",  "bad_value",
    "forged",   "replayed",   "old_incarnation",
};

/* What the type of a probe is on the wire; only probes may be long. */
constexpr std::uint16_t kProbeType = 4;
static_assert(std::is_same_v<std::variant_alternative_t<kProbeType, message_body>, msg::probe>);

} // namespace

std::string_view message_name(const message_body &body)
{
    return kNames[body.index()];
}

std::string_view flaw_name(flaw f)
{
    auto at = static_cast<std::size_t>(f);
    return at < kFlawNames.size() ? kFlawNames[at] : "unknown";
}

std::string encode(const message &m)
{
    writer w;
    w.number(kMagic);
    w.number(kVersion);
    w.number(static_cast<std::uint16_t>(m.body.index()));
    w.number(m.sender);
    w.number(m.incarnation);
    w.number(m.sequence);
    w.number(std::uint32_t{0});
    std::visit([&](const auto &body) { fields(w, body); }, m.body);
    w.patch(kHeaderBytes - 4, static_cast<std::uint32_t>(w.size() - kHeaderBytes));
    return w.take();
}

flaw decode(std::string_view bytes, message &out)
{
    if (bytes.size() < kHeaderBytes)
        return flaw::too_short;
    if (bytes.size() > kMaxProbe)
        return flaw::too_long;
    reader header(bytes.substr(0, kHeaderBytes));
    std::uint32_t magic = 0;
    std::uint16_t version = 0;
    std::uint16_t type = 0;
    std::uint32_t length = 0;
    message m;
    header.number(magic);
    header.number(version);
    header.number(type);
    header.number(m.sender);
    header.number(m.incarnation);
    header.number(m.sequence);
    header.number(length);
    if (magic != kMagic)
        return flaw::bad_magic;
    if (version != kVersion)
        return flaw::bad_version;
    if (type >= std::variant_size_v<message_body>)
        return flaw::bad_type;
    if (bytes.size() > kMaxMessage && type != kProbeType)
        return flaw::too_long;
    if (length != bytes.size() - kHeaderBytes)
        return flaw::bad_length;
    if (m.sender == kNoNode || m.incarnation == 0 || m.sequence == 0)
        return flaw::bad_value;
    reader body(bytes.substr(kHeaderBytes));
    flaw f = read_body(type, body, m.body);
    if (f == flaw::none)
        out = std::move(m);
    return f;
}

} // namespace zc::agent

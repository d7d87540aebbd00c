/* SPDX-License-Identifier: BSD-3-Clause */
#include "line.h"

#include <algorithm>
#include <array>
#include <utility>

#include <zmq.h>

#include "error.h"

namespace zc::holder {
namespace {

using namespace std::chrono_literals;

constexpr auto kAgain = 1s,
               kMostAgain = 8s; /* the first time, and at most: a rank may read slowly */
constexpr auto kGap = 2s;       /* in what comes: the connection has been made anew */
constexpr auto kSign = 500ms;   /* between signs of life */
constexpr int kLinger = 500;    /* ms, for the last words */
constexpr int kQueue = 32;      /* frames in ZeroMQ, each way */

void set(void *socket, int option, int value)
{
    zmq_setsockopt(socket, option, &value, sizeof value);
}

void set(void *socket, int option, const std::string &value)
{
    if (zmq_setsockopt(socket, option, value.data(), value.size()) != 0)
        throw error(zmq_errno(), std::string("ZeroMQ: ") + zmq_strerror(zmq_errno()));
}

} // namespace

network::network(key_pair keys) : keys_(std::move(keys)), context_(zmq_ctx_new())
{
    door_.emplace(context_, keys_.public_key);
}

network::~network()
{
    door_.reset();
    zmq_ctx_term(context_);
}

void *network::open(int type)
{
    void *const socket = zmq_socket(context_, type);
    if (socket == nullptr)
        throw error(zmq_errno(), std::string("ZeroMQ: ") + zmq_strerror(zmq_errno()));
    set(socket, ZMQ_LINGER, kLinger);
    set(socket, ZMQ_SNDHWM, kQueue);
    set(socket, ZMQ_RCVHWM, kQueue);
    set(socket, ZMQ_RECONNECT_IVL, 100);
    set(socket, ZMQ_RECONNECT_IVL_MAX, 1000);
    set(socket, ZMQ_HEARTBEAT_IVL, 1000);
    set(socket, ZMQ_HEARTBEAT_TIMEOUT, 4000);
    set(socket, ZMQ_IMMEDIATE, 1);
    set(socket, ZMQ_CURVE_SECRETKEY, keys_.secret_key);
    return socket;
}

void *network::listen(int type, const std::string &endpoint)
{
    void *const socket = open(type);
    set(socket, ZMQ_CURVE_SERVER, 1);
    set(socket, ZMQ_ZAP_DOMAIN, std::string("zc-hold"));
    if (zmq_bind(socket, endpoint.c_str()) != 0) {
        const int why = zmq_errno();
        zmq_close(socket);
        throw error(why, "cannot listen at " + endpoint + ": " + zmq_strerror(why));
    }
    return socket;
}

void *network::connect(int type, const std::string &endpoint)
{
    void *const socket = open(type);
    set(socket, ZMQ_CURVE_SERVERKEY, keys_.public_key);
    set(socket, ZMQ_CURVE_PUBLICKEY, keys_.public_key);
    if (zmq_connect(socket, endpoint.c_str()) != 0) {
        const int why = zmq_errno();
        zmq_close(socket);
        throw error(why, endpoint + ": " + zmq_strerror(why));
    }
    return socket;
}

std::string endpoint_of(void *socket)
{
    std::array<char, 256> name{};
    std::size_t size = name.size();
    zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, name.data(), &size);
    return name.data();
}

/* ---- the streams of a rank ---- */

outgoing &rank_streams::out(stream_id which)
{
    return out_.try_emplace(which, which, kWindow).first->second;
}

incoming &rank_streams::in(stream_id which)
{
    return in_.try_emplace(which, which).first->second;
}

void rank_streams::rewind()
{
    for (auto &[which, stream] : out_)
        stream.rewind();
}

bool rank_streams::is_done() const
{
    for (const auto &[which, stream] : out_) {
        if (!stream.is_done())
            return false;
    }
    return true;
}

nlohmann::json rank_streams::save() const
{
    nlohmann::json saved = {{"out", nlohmann::json::array()}, {"in", nlohmann::json::array()}};
    for (const auto &[which, stream] : out_)
        saved["out"].push_back({{"stream", static_cast<int>(which)}, {"state", stream.save()}});
    for (const auto &[which, stream] : in_)
        saved["in"].push_back({{"stream", static_cast<int>(which)}, {"state", stream.save()}});
    return saved;
}

void rank_streams::restore(const nlohmann::json &saved)
{
    for (const auto &each : saved.at("out"))
        out(static_cast<stream_id>(each.at("stream").get<int>())).restore(each.at("state"));
    for (const auto &each : saved.at("in"))
        in(static_cast<stream_id>(each.at("stream").get<int>())).restore(each.at("state"));
}

/* ---- the connection ---- */

line::line(void *socket) : socket_(socket), heard_(clock::now()), progress_(heard_), again_(kAgain)
{
}

line::~line()
{
    zmq_close(socket_);
}

void line::say(const nlohmann::json &what)
{
    control_out_.push(what.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::vector<nlohmann::json> line::hear()
{
    std::vector<nlohmann::json> heard;
    for (;;) {
        const std::string_view bytes = control_in_.bytes();
        const std::size_t end = bytes.find('\n');
        if (end == std::string::npos)
            return heard;
        nlohmann::json said = nlohmann::json::parse(bytes.substr(0, end), nullptr, false);
        if (!said.is_object())
            throw error(EBADMSG, "the other holder has sent what is no request");
        heard.push_back(std::move(said));
        control_in_.use(end + 1);
    }
}

void line::attach(rank_streams *streams)
{
    streams_ = streams;
    if (streams_)
        streams_->rewind();
}

std::chrono::milliseconds line::silence() const
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - heard_);
}

void line::receive()
{
    for (;;) {
        const std::vector<std::string> parts = receive_parts(socket_);
        if (parts.empty())
            return;
        if (const std::optional<frame> got = decode(parts.back())) {
            const auto now = clock::now();
            if (now - heard_ > kGap)
                again_ = clock::duration::zero();
            heard_ = now;
            dispatch(*got);
        }
    }
}

void line::dispatch(const frame &got)
{
    const bool ack = got.kind == frame::ACK;
    if (ack && (got.stream != stream_id::control || got.offset > 0)) {
        progress_ = heard_;
        again_ = kAgain;
    }
    if (got.stream == stream_id::control)
        ack ? control_out_.acknowledge(got.offset) : control_in_.accept(got);
    else if (got.stream == stream_id::image)
        return;
    else if (streams_ && ack)
        streams_->out(got.stream).acknowledge(got.offset);
    else if (streams_)
        streams_->in(got.stream).accept(got);
}

bool line::send(const frame &what)
{
    const std::string bytes = encode(what);
    return zmq_send(socket_, bytes.data(), bytes.size(), ZMQ_DONTWAIT) >= 0;
}

void line::send_all(outgoing &from)
{
    while (const std::optional<frame> next = from.next()) {
        if (!send(*next)) {
            from.take_back(*next);
            return;
        }
    }
}

void line::acknowledge(incoming &of)
{
    if (const std::optional<frame> made = of.acknowledgement())
        send(*made); /* if it is lost the other sends again, and is answered again */
}

void line::resend_what_waits()
{
    bool waits = control_out_.waits();
    if (streams_) {
        for (const auto &[which, stream] : streams_->all_out())
            waits = waits || stream.waits();
    }
    const auto now = clock::now();
    if (!waits)
        progress_ = now;
    if (!waits || now - progress_ < again_)
        return;
    progress_ = now;
    again_ = std::clamp<clock::duration>(2 * again_, kAgain, kMostAgain);
    control_out_.rewind();
    if (streams_)
        streams_->rewind();
}

void line::pump()
{
    receive();
    resend_what_waits();
    acknowledge(control_in_);
    send_all(control_out_);
    if (streams_) {
        for (auto &[which, stream] : streams_->all_in())
            acknowledge(stream);
        for (auto &[which, stream] : streams_->all_out())
            send_all(stream);
    }
    const auto now = clock::now();
    if (now - sign_ > kSign && send({frame::ACK, stream_id::control, 0, {}}))
        sign_ = now;
}

} // namespace zc::holder

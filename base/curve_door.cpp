/* SPDX-License-Identifier: BSD-3-Clause */
#include "curve_door.h"

#include <array>

#include <zmq.h>

#include "error.h"

namespace zc {

std::vector<std::string> receive_parts(void *socket)
{
    std::vector<std::string> parts;
    zmq_msg_t part;
    do {
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&part);
            return {};
        }
        parts.emplace_back(static_cast<const char *>(zmq_msg_data(&part)), zmq_msg_size(&part));
        int more = zmq_msg_more(&part);
        zmq_msg_close(&part);
        if (!more)
            break;
    } while (true);
    return parts;
}

curve_door::curve_door(void *context, const std::string &public_key)
{
    public_raw_.resize(32);
    zmq_z85_decode(reinterpret_cast<std::uint8_t *>(public_raw_.data()), public_key.c_str());
    socket_ = zmq_socket(context, ZMQ_REP);
    int linger = 0;
    if (socket_ == nullptr || zmq_setsockopt(socket_, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_bind(socket_, "inproc://zeromq.zap.01") != 0) {
        const int why = zmq_errno(); /* before it is closed */
        if (socket_ != nullptr)
            zmq_close(socket_);
        throw error(why, zmq_strerror(why));
    }
}

curve_door::~curve_door()
{
    zmq_close(socket_);
}

void curve_door::answer()
{
    for (;;) {
        std::vector<std::string> request = receive_parts(socket_);
        if (request.empty())
            return;
        /* version, id, domain, address, identity, mechanism, credentials */
        bool known = request.size() >= 7 && request[0] == "1.0" && request[5] == "CURVE" &&
                     request[6] == public_raw_;
        if (!known)
            strangers_++;
        std::string id = request.size() > 1 ? request[1] : "";
        const std::array<std::string, 6> reply = {
            "1.0", id, known ? "200" : "400", known ? "OK" : "not one of us", known ? "agent" : "",
            ""};
        for (std::size_t i = 0; i < reply.size(); i++)
            zmq_send(socket_, reply[i].data(), reply[i].size(),
                     i + 1 < reply.size() ? ZMQ_SNDMORE : 0);
    }
}

} // namespace zc

// SPDX-License-Identifier: BSD-3-Clause
#include "client/groups/inquiry.h"

#include <algorithm>
#include <cstring>

#include "client/p2p/tags.h"

namespace ulc::client {
namespace {

bool send(Outbox& outbox, std::uint16_t rank, const Inquiry& inquiry) noexcept {
    SendArgs args;
    args.stream = rank;
    args.tag = kTagInquiry;
    args.payload = Pieces::one(&inquiry, sizeof inquiry);
    return outbox.send(args, nullptr) == ULC_OK;
}

Inquiry inquiry_of(std::uint32_t group, std::uint32_t number, const Agreement& mine) noexcept {
    Inquiry inquiry{};
    inquiry.group = group;
    inquiry.number = number;
    inquiry.signature = static_cast<std::uint32_t>(mine.signature.bits());
    inquiry.arguments = mine.arguments;
    inquiry.algorithm = mine.algorithm;
    return inquiry;
}

}  // namespace

bool ask(Outbox& outbox, std::uint16_t rank, std::uint32_t group, std::uint32_t number,
         const Agreement& mine) noexcept {
    return send(outbox, rank, inquiry_of(group, number, mine));
}

bool hear_inquiry(Groups& groups, Outbox& outbox, std::uint16_t source,
                  std::span<const unsigned char> octets) noexcept {
    Inquiry heard;
    if (octets.size() < sizeof heard) return false;
    std::memcpy(&heard, octets.data(), sizeof heard);
    if (heard.signature > Signature::kMask || heard.answer > 1) return false;
    Group* group = groups.find(heard.group);
    if (group == nullptr || std::ranges::count(group->ranks, source) == 0) return false;
    const Agreement* mine = group->operations.recall(heard.number);
    if (mine == nullptr) return true;
    const Agreement theirs{Signature::of_tag(heard.signature), heard.arguments, heard.algorithm};
    const char* unlike = mine->unlike(theirs);
    if (unlike == nullptr) return true;
    group->operations.disagreement = {unlike, heard.number, source};
    if (heard.answer != 0) return true;
    Inquiry answer = inquiry_of(heard.group, heard.number, *mine);
    answer.answer = 1;
    // Without space it is lost, and the other member asks again.
    static_cast<void>(send(outbox, source, answer));
    return true;
}

}  // namespace ulc::client

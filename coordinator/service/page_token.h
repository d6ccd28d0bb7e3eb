// Page tokens: where the next page starts, bound to the query that made them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/message_size.h"
#include "grpcpp/support/status.h"

namespace mega::service {

// `query` says all that selects the list ("jobs in namespaces/default"); `place` the last item
// seen.
std::string MakePageToken(std::string_view query, const std::vector<std::string>& place);

// Fills `place` (empty for an empty token: the first page). INVALID_ARGUMENT for a token of another
// query or one that we never made.
grpc::Status ReadPageToken(std::string_view token, std::string_view query, size_t place_size,
                           std::vector<std::string>* place);

// A page stays far below the message limit, whatever its items hold; it has one of them at least.
inline constexpr size_t kMostPageBytes = 12 << 20;
static_assert(kMostPageBytes < kMostMessageBytes / 2);

// The namespace that a list is asked of: namespaces/NAMESPACE. Empty for namespaces/- and for no
// parent: all of them. INVALID_ARGUMENT for anything else.
grpc::Status ReadParent(const std::string& parent, std::string* name_space);

// 0 means 100; INVALID_ARGUMENT above 1000 or below 0.
grpc::Status PageSize(int32_t asked, size_t* size);

}  // namespace mega::service

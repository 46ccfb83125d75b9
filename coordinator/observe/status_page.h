// The status page: one HTML file, status_page.html, that fetches /status.json and nothing else.
#ifndef TANDEM_COORDINATOR_OBSERVE_STATUS_PAGE_H_
#define TANDEM_COORDINATOR_OBSERVE_STATUS_PAGE_H_

#include <string_view>

namespace tandem::coordinator {

extern const std::string_view kStatusPage;

}  // namespace tandem::coordinator

#endif  // TANDEM_COORDINATOR_OBSERVE_STATUS_PAGE_H_

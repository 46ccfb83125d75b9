// Named: the value of an enum by its name, for tests whose parameters are names.
#ifndef TANDEM_TESTS_COMMON_CONFIG_NAMED_H_
#define TANDEM_TESTS_COMMON_CONFIG_NAMED_H_

#include <string_view>

#include "common/base/check.h"
#include "common/config/text_form.h"

namespace tandem::testing {

template <config::NamedEnum E>
E Named(std::string_view name) {
  E value{};
  TANDEM_CHECK(config::FromText(name, value));
  return value;
}

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_COMMON_CONFIG_NAMED_H_

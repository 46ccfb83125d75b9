// Prints docs/configuration.md.
#include <iostream>

#include "common/config/server_config.h"

int main() { std::cout << tandem::config::ConfigurationPage(); }

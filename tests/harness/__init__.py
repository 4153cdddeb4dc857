"""What integration, adversarial and chaos tests share: programs under test, HTTP, leftovers, network namespaces."""

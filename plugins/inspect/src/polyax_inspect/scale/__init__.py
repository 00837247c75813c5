"""What a program on many devices would take: predicted from its partitioned form and a description of the machine."""

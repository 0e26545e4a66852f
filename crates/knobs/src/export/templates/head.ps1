# Saves what is there, sets what the plan says, and reads each value back.
#   -WhatIf   says what it would do and changes nothing
#   -Undo     puts back what was saved; leaves alone what somebody else changed since, unless -Force
# What was there is saved once, before the first write; a later run keeps the first file.

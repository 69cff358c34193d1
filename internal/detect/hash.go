package detect

import (
	"hash/maphash"
	"sync"
)

// hashSeed differs in each process: who makes the values cannot make them collide.
var hashSeed = sync.OnceValue(maphash.MakeSeed)
